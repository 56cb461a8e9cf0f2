//! Signing and encryption by the libraries to choose from: RustCrypto, aws-lc-rs, ring, and what
//! `smbscope_wire::crypto` made of it. Prints the table of docs/measurements/crypto.md.
//!
//! The unit is nanoseconds per message on one thread; the least of many short rounds counts,
//! because the machines are shared. Keys are set up beforehand, as in a session.
//!
//!     cargo run --release --manifest-path bench/crypto/Cargo.toml

use aes::cipher::BlockCipherEncrypt;
use aes::{Aes128Enc, Aes256Enc};
use aes_gcm::AesGcm;
use aes_gcm::aead::consts::{U11, U12, U16};
use aes_gcm::aead::{AeadInOut, KeyInit};
use aws_lc_rs::{aead as aws, cmac as aws_cmac, hmac as aws_hmac};
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use ring::{aead as ring_aead, hmac as ring_hmac};
use smbscope_wire::crypto::{Cipher, Decryptor, Encryptor, Key, Signer};
use smbscope_wire::smb2::negotiate_context::SigningId;
use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SIZES: [usize; 4] = [120, 4096, 65536, 1 << 20];
/// Passes over the whole table; the least of each cell counts.
const PASSES: usize = 5;
const KEY: [u8; 32] = [7; 32];
/// Room for the transform header.
const ROOM: usize = 52;

/// Nanoseconds of one call: the least of 30 rounds of about a millisecond.
fn least(mut call: impl FnMut()) -> f64 {
    let mut calls = 1u32;
    loop {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        if start.elapsed() > Duration::from_millis(1) || calls > 1 << 20 {
            break;
        }
        calls *= 2;
    }
    let rounds = (0..30).map(|_| {
        let start = Instant::now();
        (0..calls).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / f64::from(calls)
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Library, algorithm and the least times so far.
type Row = (String, String, [f64; SIZES.len()]);
static TABLE: Mutex<Vec<Row>> = Mutex::new(Vec::new());

fn row(what: &str, library: &str, measure: impl FnMut(usize) -> f64) {
    let cells = SIZES.map(measure);
    let mut table = TABLE.lock().unwrap();
    match table.iter_mut().find(|row| row.0 == what && row.1 == library) {
        Some(row) => row.2.iter_mut().zip(cells).for_each(|(to, from)| *to = to.min(from)),
        None => table.push((what.to_owned(), library.to_owned(), cells)),
    }
}

fn print() {
    println!("| what | library | 120 B | 4 KiB (GB/s) | 64 KiB (GB/s) | 1 MiB (GB/s) |");
    println!("|---|---|---|---|---|---|");
    for (what, library, cells) in &*TABLE.lock().unwrap() {
        let cells = SIZES.iter().zip(cells).map(|(bytes, ns)| match bytes {
            ..1000 => format!("{ns:.0}"),
            _ => format!("{ns:.0} ({:.1})", *bytes as f64 / ns),
        });
        println!("| {what} | {library} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

fn message(bytes: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..bytes).map(|index| (index % 251) as u8).collect();
    message[..4].copy_from_slice(b"\xfeSMB");
    message
}

fn signing() {
    for (what, algorithm) in [
        ("HMAC-SHA256", SigningId::HMAC_SHA256),
        ("AES-CMAC", SigningId::AES_CMAC),
        ("AES-GMAC", SigningId::AES_GMAC),
    ] {
        let signer = Signer::new(algorithm, &Key::new(&KEY[..16]).unwrap()).unwrap();
        row(&format!("{what} sign"), "smbscope", |bytes| {
            let mut message = message(bytes);
            least(|| assert!(signer.sign(black_box(&mut message))))
        });
        row(&format!("{what} verify"), "smbscope", |bytes| {
            let mut message = message(bytes);
            signer.sign(&mut message);
            least(|| assert!(signer.verify_in_place(black_box(&mut message))))
        });
        match algorithm {
            SigningId::HMAC_SHA256 => {
                let key = aws_hmac::Key::new(aws_hmac::HMAC_SHA256, &KEY[..16]);
                row(what, "aws-lc-rs", |bytes| {
                    let message = message(bytes);
                    least(|| _ = black_box(aws_hmac::sign(&key, black_box(&message))))
                });
                let key = ring_hmac::Key::new(ring_hmac::HMAC_SHA256, &KEY[..16]);
                row(what, "ring", |bytes| {
                    let message = message(bytes);
                    least(|| _ = black_box(ring_hmac::sign(&key, black_box(&message))))
                });
                use hmac::Mac;
                let mac = hmac::Hmac::<sha2::Sha256>::new_from_slice(&KEY[..16]).unwrap();
                row(what, "RustCrypto", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let mut mac = mac.clone();
                        mac.update(black_box(&message));
                        black_box(mac.finalize());
                    })
                });
            }
            SigningId::AES_CMAC => {
                let key = aws_cmac::Key::new(aws_cmac::AES_128, &KEY[..16]).unwrap();
                row(what, "aws-lc-rs, three parts", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let mut mac = aws_cmac::Context::with_key(&key);
                        mac.update(black_box(&message[..48])).unwrap();
                        mac.update(&[0; 16]).unwrap();
                        mac.update(black_box(&message[64..])).unwrap();
                        _ = black_box(mac.sign());
                    })
                });
                row(what, "aws-lc-rs", |bytes| {
                    let message = message(bytes);
                    least(|| _ = black_box(aws_cmac::sign(&key, black_box(&message))))
                });
                use cmac::Mac;
                let mac = cmac::Cmac::<Aes128Enc>::new_from_slice(&KEY[..16]).unwrap();
                row(what, "RustCrypto", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let mut mac = mac.clone();
                        mac.update(black_box(&message));
                        black_box(mac.finalize());
                    })
                });
            }
            _ => {
                let cipher = Aes128Enc::new_from_slice(&KEY[..16]).unwrap();
                let mut secret = ghash::Key::default();
                cipher.encrypt_block(&mut secret);
                let hash = GHash::new(&secret);
                row(what, "RustCrypto", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let mut hash = hash.clone();
                        hash.update_padded(black_box(&message));
                        hash.update(&[ghash::Block::default()]);
                        let mut mask = ghash::Block::default();
                        cipher.encrypt_block(&mut mask);
                        black_box((hash.finalize(), mask));
                    })
                });
                row(&format!("{what} verify, shared"), "smbscope", |bytes| {
                    let mut message = message(bytes);
                    signer.sign(&mut message);
                    least(|| assert!(signer.verify(black_box(&message))))
                });
                let key = aws::UnboundKey::new(&aws::AES_128_GCM, &KEY[..16]).unwrap();
                let key = aws::LessSafeKey::new(key);
                row(what, "aws-lc-rs", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let nonce = aws::Nonce::assume_unique_for_key([1; 12]);
                        let aad = aws::Aad::from(black_box(&message));
                        _ = black_box(key.seal_in_place_separate_tag(nonce, aad, &mut []));
                    })
                });
                let key = ring_aead::UnboundKey::new(&ring_aead::AES_128_GCM, &KEY[..16]).unwrap();
                let key = ring_aead::LessSafeKey::new(key);
                row(what, "ring", |bytes| {
                    let message = message(bytes);
                    least(|| {
                        let nonce = ring_aead::Nonce::assume_unique_for_key([1; 12]);
                        let aad = ring_aead::Aad::from(black_box(&message));
                        _ = black_box(key.seal_in_place_separate_tag(nonce, aad, &mut []));
                    })
                });
            }
        }
    }
}

fn rust_crypto<A, const N: usize>(what: &str, aead: &A)
where
    A: AeadInOut<TagSize = U16>,
    aes_gcm::aead::Nonce<A>: From<[u8; N]>,
{
    row(&format!("{what} encrypt"), "RustCrypto", |bytes| {
        let mut message = message(bytes);
        least(|| {
            let buffer = black_box(message.as_mut_slice()).into();
            _ = black_box(aead.encrypt_inout_detached(&[1; N].into(), &[2; 32], buffer));
        })
    });
}

fn new<A: KeyInit>(key: &[u8]) -> A {
    A::new_from_slice(key).unwrap()
}

fn encryption() {
    for (what, cipher) in [
        ("AES-128-GCM", Cipher::AES_128_GCM),
        ("AES-256-GCM", Cipher::AES_256_GCM),
        ("AES-128-CCM", Cipher::AES_128_CCM),
        ("AES-256-CCM", Cipher::AES_256_CCM),
    ] {
        let key = &KEY[..cipher.key_bytes().unwrap()];
        let encryptor = Encryptor::new(cipher, &Key::new(key).unwrap()).unwrap();
        let decryptor = Decryptor::new(cipher, &Key::new(key).unwrap()).unwrap();
        row(&format!("{what} encrypt"), "smbscope", |bytes| {
            let mut message = [&[0; ROOM], message(bytes).as_slice()].concat();
            least(|| encryptor.encrypt(1, black_box(&mut message)).unwrap())
        });
        row(&format!("{what} decrypt"), "smbscope", |bytes| {
            let mut message = [&[0; ROOM], message(bytes).as_slice()].concat();
            encryptor.encrypt(1, &mut message).unwrap();
            let mut out = Vec::with_capacity(bytes);
            // The copy is in it.
            least(|| decryptor.decrypt(black_box(&message), &mut out).unwrap())
        });
        match cipher {
            Cipher::AES_128_CCM => {
                rust_crypto::<_, 11>(what, &new::<ccm::Ccm<Aes128Enc, U16, U11>>(key));
            }
            Cipher::AES_256_CCM => {
                rust_crypto::<_, 11>(what, &new::<ccm::Ccm<Aes256Enc, U16, U11>>(key));
            }
            _ => {
                let (aws, ring) = if key.len() == 16 {
                    rust_crypto::<_, 12>(what, &new::<AesGcm<Aes128Enc, U12>>(key));
                    (&aws::AES_128_GCM, &ring_aead::AES_128_GCM)
                } else {
                    rust_crypto::<_, 12>(what, &new::<AesGcm<Aes256Enc, U12>>(key));
                    (&aws::AES_256_GCM, &ring_aead::AES_256_GCM)
                };
                let aws = aws::LessSafeKey::new(aws::UnboundKey::new(aws, key).unwrap());
                row(&format!("{what} encrypt"), "aws-lc-rs", |bytes| {
                    let mut message = message(bytes);
                    least(|| {
                        let nonce = aws::Nonce::assume_unique_for_key([1; 12]);
                        let (aad, buffer) = (aws::Aad::from([2; 32]), black_box(&mut message));
                        _ = black_box(aws.seal_in_place_separate_tag(nonce, aad, buffer));
                    })
                });
                row(&format!("{what} decrypt"), "aws-lc-rs", |bytes| {
                    let nonce = || aws::Nonce::assume_unique_for_key([1; 12]);
                    let aad = || aws::Aad::from([2; 32]);
                    let mut message = message(bytes);
                    let tag = aws.seal_in_place_separate_tag(nonce(), aad(), &mut message).unwrap();
                    let mut out = vec![0; bytes];
                    least(|| {
                        let text = black_box(&message);
                        let (tag, out) = (tag.as_ref(), &mut out);
                        aws.open_separate_gather(nonce(), aad(), text, tag, out).unwrap();
                    })
                });
                let ring = ring_aead::UnboundKey::new(ring, key).unwrap();
                let ring = ring_aead::LessSafeKey::new(ring);
                row(&format!("{what} encrypt"), "ring", |bytes| {
                    let mut message = message(bytes);
                    least(|| {
                        let nonce = ring_aead::Nonce::assume_unique_for_key([1; 12]);
                        let (aad, buffer) =
                            (ring_aead::Aad::from([2; 32]), black_box(&mut message));
                        _ = black_box(ring.seal_in_place_separate_tag(nonce, aad, buffer));
                    })
                });
            }
        }
    }
}

/// What a session keeps: the time to make it and the memory that it takes.
fn keys() {
    println!("\n| a key of | set up, ns | bytes |\n|---|---|---|");
    let short = Key::new(&KEY[..16]).unwrap();
    let long = Key::new(&KEY).unwrap();
    key("Signer(HMAC-SHA256)", || Signer::new(SigningId::HMAC_SHA256, &short).unwrap());
    key("Signer(AES-CMAC)", || Signer::new(SigningId::AES_CMAC, &short).unwrap());
    key("Signer(AES-GMAC)", || Signer::new(SigningId::AES_GMAC, &short).unwrap());
    key("Encryptor(AES-128-GCM)", || Encryptor::new(Cipher::AES_128_GCM, &short).unwrap());
    key("Decryptor(AES-128-GCM)", || Decryptor::new(Cipher::AES_128_GCM, &short).unwrap());
    key("Decryptor(AES-256-GCM)", || Decryptor::new(Cipher::AES_256_GCM, &long).unwrap());
    key("Decryptor(AES-128-CCM)", || Decryptor::new(Cipher::AES_128_CCM, &short).unwrap());
}

/// Memory from the growth of the process by 50,000 of them: libraries in C count too.
fn key<T>(what: &str, make: impl Fn() -> T) {
    let ns = least(|| _ = black_box(make()));
    let mut kept = Vec::with_capacity(50_000);
    kept.resize_with(100, &make);
    let before = resident_bytes();
    kept.resize_with(50_000, &make);
    let bytes = resident_bytes().saturating_sub(before) / 49_900;
    println!("| {what} | {ns:.0} | {bytes} |");
    // Not freed, so that the next one does not take over the room.
    std::mem::forget(kept);
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

fn main() {
    for _ in 0..PASSES {
        signing();
        encryption();
    }
    print();
    keys();
}
