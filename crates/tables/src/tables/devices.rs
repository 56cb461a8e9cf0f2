//! Table `devices`: devices that interrupt, and network adapters.

use crate::row::table;

table! {
    /// One device.
    Device, "devices" {
        recording: String, None, Machine, "The recording that the row belongs to.";
        name: Option<String>, None, Public, "Its name for people.";
        instance: String, None, Machine, "Its instance id: bus, vendor, model and place.";
        class: Option<String>, None, Public, "What it is: net, scsiadapter, usb, ..., or the GUID of another class.";
        driver: Option<String>, None, Public, "The service whose driver serves it.";
        filters: Option<String>, None, Public, "Other drivers above and below that driver, separated by commas.";
        irq: Option<i64>, None, Public, "IRQ number; negative for message-signalled interrupts.";
        affinity: Option<u64>, None, Public, "CPUs that it may interrupt, as bits; null if not known.";
        node: Option<u64>, None, Public, "NUMA node of its bus; null if not known.";
    }
}
