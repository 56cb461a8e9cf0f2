# Collects the DFS referral caches of clients for `smbscope plan namespace gate --state FILE --cache FILE`. It changes nothing.
#
#   .\collect.ps1 -Out caches.txt                                     this machine
#   .\collect.ps1 -Client (Get-Content clients.txt) -Out caches.txt   others, by PowerShell remoting (WinRM)
#   .\collect.ps1 -Client PC1, PC2 -Server FILE1, FILE2 -Out caches.txt   and what servers have open for clients
#
# Run it as an administrator. dfsutil.exe is part of the tools of DFS Namespaces (RSAT); it can be copied to clients
# without them and named by -Dfsutil. Times are UTC.
param(
    [string[]] $Client = @(),
    [string[]] $Server = @(),
    [string] $Dfsutil = 'dfsutil.exe',
    [Parameter(Mandatory = $true)] [string] $Out
)

$ofClient = {
    param([string] $Dfsutil)
    $time = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ', [Globalization.CultureInfo]::InvariantCulture)
    "smbscope-client: $env:COMPUTERNAME $time"
    [Net.Dns]::GetHostAddresses('') | ForEach-Object { "smbscope-address: $($_.IPAddressToString)" }
    if (-not (Get-Command -Name $Dfsutil -ErrorAction SilentlyContinue)) {
        "smbscope-failed: $Dfsutil was not found"
        return
    }
    'smbscope-section: referrals'
    & $Dfsutil cache referral
    "smbscope-exit: $LASTEXITCODE"
    'smbscope-section: opens'
    Get-SmbConnection -ErrorAction SilentlyContinue | ForEach-Object { "\\$($_.ServerName)\$($_.ShareName)`t$($_.NumOpens)" }
}

$ofServer = {
    $time = [DateTime]::UtcNow.ToString('yyyy-MM-ddTHH:mm:ssZ', [Globalization.CultureInfo]::InvariantCulture)
    "smbscope-server: $env:COMPUTERNAME $time"
    'smbscope-section: opens'
    Get-SmbOpenFile | ForEach-Object { "$($_.ClientComputerName)`t$($_.Path)" }
}

function Ask([string] $Name, [string] $Kind, [scriptblock] $Script, [object[]] $Arguments) {
    try {
        Invoke-Command -ComputerName $Name -ScriptBlock $Script -ArgumentList $Arguments -ErrorAction Stop
    }
    catch {
        "smbscope-${Kind}: $Name"
        "smbscope-failed: $(($_.Exception.Message -split "`r?`n")[0])"
    }
}

$lines = @(
    if ($Client.Count -eq 0) { & $ofClient $Dfsutil }
    foreach ($name in $Client) { Ask $name 'client' $ofClient @($Dfsutil) }
    foreach ($name in $Server) { Ask $name 'server' $ofServer @() }
)
[IO.File]::WriteAllLines((Join-Path (Get-Location) $Out), [string[]] $lines)
