# Writes what `smbscope plan cores` needs to know of a Windows machine into one JSON file: network adapters with their
# receive-side scaling, processors with cores, sockets and NUMA nodes, SMB Multichannel and the power plan. It only reads;
# nothing is changed. Windows PowerShell 5.1 or later, Windows Server 2012 or later.
#
#   powershell -ExecutionPolicy Bypass -File collect.ps1 [-Out machine.json]
#
# Host names, IP addresses and names of adapters are in the file; MAC addresses and user names are not.

param([string]$Out = 'smbscope-machine.json')

$script:failures = @()

# Runs a block; what fails is noted, and the others go into the file nevertheless.
function Get-Part([string]$Name, [scriptblock]$Block) {
    try {
        @(& $Block)
    } catch {
        $script:failures += "${Name}: $($_.Exception.Message)"
        @()
    }
}

function Get-Processors($Members) {
    @($Members | Where-Object { $null -ne $_ } | ForEach-Object {
        if ($null -ne $_.ProcessorNumber) { $group = $_.ProcessorGroup; $number = $_.ProcessorNumber }
        else { $group = $_.Group; $number = $_.Number }
        [ordered]@{
            ProcessorGroup  = [int]$group
            ProcessorNumber = [int]$number
            PreferenceIndex = [int]$_.PreferenceIndex
        }
    })
}

$rss = Get-Part 'Get-NetAdapterRss' {
    Get-NetAdapterRss -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            Name                  = $_.Name
            InterfaceDescription  = $_.InterfaceDescription
            Enabled               = $_.Enabled
            NumberOfReceiveQueues = $_.NumberOfReceiveQueues
            Profile               = "$($_.Profile)"
            BaseProcessorGroup    = $_.BaseProcessorGroup
            BaseProcessorNumber   = $_.BaseProcessorNumber
            MaxProcessorGroup     = $_.MaxProcessorGroup
            MaxProcessorNumber    = $_.MaxProcessorNumber
            MaxProcessors         = $_.MaxProcessors
            NumaNode              = $_.NumaNode
            RssProcessorArray     = @(Get-Processors $_.RssProcessorArray)
            IndirectionTable      = @(Get-Processors $_.IndirectionTable)
        }
    }
}

$hardware = Get-Part 'Get-NetAdapterHardwareInfo' {
    Get-NetAdapterHardwareInfo -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            Name                 = $_.Name
            InterfaceDescription = $_.InterfaceDescription
            SegmentNumber        = $_.SegmentNumber
            BusNumber            = $_.BusNumber
            DeviceNumber         = $_.DeviceNumber
            FunctionNumber       = $_.FunctionNumber
            NumaNode             = $_.NumaNode
            PciExpressCurrentLinkSpeedEncoded = $_.PciExpressCurrentLinkSpeedEncoded
            PciExpressCurrentLinkWidth        = $_.PciExpressCurrentLinkWidth
            PciExpressMaxLinkSpeedEncoded     = $_.PciExpressMaxLinkSpeedEncoded
            PciExpressMaxLinkWidth            = $_.PciExpressMaxLinkWidth
        }
    }
}

$adapters = Get-Part 'Get-NetAdapter' {
    Get-NetAdapter -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            Name                 = $_.Name
            InterfaceDescription = $_.InterfaceDescription
            InterfaceIndex       = $_.InterfaceIndex
            Status               = "$($_.Status)"
            LinkSpeed            = "$($_.LinkSpeed)"
            Speed                = $_.Speed
            Virtual              = $_.Virtual
            HardwareInterface    = $_.HardwareInterface
            DriverFileName       = $_.DriverFileName
        }
    }
}

# Keywords of the driver that decide about receive work.
$keywords = '*RSS', '*NumRSSQueues', '*NumaNodeId', '*InterruptModeration', '*ReceiveBuffers'
$properties = Get-Part 'Get-NetAdapterAdvancedProperty' {
    Get-NetAdapterAdvancedProperty -AllProperties -ErrorAction Stop |
        Where-Object { $keywords -contains $_.RegistryKeyword } | ForEach-Object {
            [ordered]@{
                Name            = $_.Name
                RegistryKeyword = $_.RegistryKeyword
                RegistryValue   = @($_.RegistryValue | ForEach-Object { "$_" })
                ValidRegistryValues      = @($_.ValidRegistryValues | ForEach-Object { "$_" })
                NumericParameterMaxValue = $_.NumericParameterMaxValue
            }
        }
}

# Cores, sockets and NUMA nodes of all processor groups: the buffer of GetLogicalProcessorInformationEx, in base64.
$processors = Get-Part 'GetLogicalProcessorInformationEx' {
    Add-Type -ErrorAction Stop -Namespace Smbscope -Name Native -MemberDefinition @'
[System.Runtime.InteropServices.DllImport("kernel32.dll", SetLastError = true)]
public static extern bool GetLogicalProcessorInformationEx(int relationship, byte[] buffer, ref uint length);
'@
    $all = 0xffff
    $length = [uint32]0
    [void][Smbscope.Native]::GetLogicalProcessorInformationEx($all, $null, [ref]$length)
    $buffer = New-Object byte[] $length
    if (-not [Smbscope.Native]::GetLogicalProcessorInformationEx($all, $buffer, [ref]$length)) {
        throw "error $([System.Runtime.InteropServices.Marshal]::GetLastWin32Error())"
    }
    [ordered]@{ LogicalProcessorInformation = [Convert]::ToBase64String($buffer, 0, $length) }
}

$model = Get-Part 'Win32_Processor' {
    Get-CimInstance Win32_Processor -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            Model                     = $_.Name
            Socket                    = $_.SocketDesignation
            NumberOfCores             = $_.NumberOfCores
            NumberOfLogicalProcessors = $_.NumberOfLogicalProcessors
        }
    }
}

$multichannel = Get-Part 'Get-SmbMultichannelConnection' {
    Get-SmbMultichannelConnection -IncludeNotSelected -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            ServerName           = $_.ServerName
            ClientIpAddress      = $_.ClientIpAddress
            ServerIpAddress      = $_.ServerIpAddress
            ClientInterfaceIndex = $_.ClientInterfaceIndex
            ServerInterfaceIndex = $_.ServerInterfaceIndex
            Selected             = $_.Selected
            ClientRSSCapable     = $_.ClientRSSCapable
            ClientRdmaCapable    = $_.ClientRdmaCapable
            CurrentChannels      = $_.CurrentChannels
            MaxChannels          = $_.MaxChannels
        }
    }
}

$interfaces = Get-Part 'Get-SmbServerNetworkInterface' {
    Get-SmbServerNetworkInterface -ErrorAction Stop | ForEach-Object {
        [ordered]@{
            ScopeName      = $_.ScopeName
            FriendlyName   = $_.FriendlyName
            InterfaceIndex = $_.InterfaceIndex
            IpAddress      = $_.IpAddress
            RssCapable     = $_.RssCapable
            RdmaCapable    = $_.RdmaCapable
            LinkSpeed      = $_.LinkSpeed
        }
    }
}

$power = Get-Part 'Win32_PowerPlan' {
    Get-CimInstance -Namespace root\cimv2\power -ClassName Win32_PowerPlan -Filter 'IsActive = TRUE' -ErrorAction Stop |
        ForEach-Object { [ordered]@{ ElementName = $_.ElementName; InstanceID = $_.InstanceID } }
}

# Processes behind the ports of SMB and NFS. The SMB server is System, whose affinity cannot be read or set.
$servers = Get-Part 'ServerProcesses' {
    Get-NetTCPConnection -ErrorAction Stop | Where-Object { 445, 2049 -contains $_.LocalPort } |
        Select-Object -ExpandProperty OwningProcess -Unique | ForEach-Object {
            $process = Get-Process -Id $_ -ErrorAction Stop
            $affinity = try { "$([int64]$process.ProcessorAffinity)" } catch { '' }
            [ordered]@{
                ServerProcessId   = [int]$_
                ProcessName       = $process.ProcessName
                ProcessorAffinity = $affinity
            }
        }
}

$machine = [ordered]@{
    Format       = 'smbscope-machine-windows-1'
    Processors   = @($processors)
    Model        = @($model)
    Adapters     = @($adapters)
    Hardware     = @($hardware)
    Rss          = @($rss)
    Properties   = @($properties)
    Multichannel = @($multichannel)
    Interfaces   = @($interfaces)
    Servers      = @($servers)
    Power        = @($power)
    Failures     = @($script:failures)
}

$text = $machine | ConvertTo-Json -Depth 6
$path = $ExecutionContext.SessionState.Path.GetUnresolvedProviderPathFromPSPath($Out)
[System.IO.File]::WriteAllText($path, $text, (New-Object System.Text.UTF8Encoding $false))
Write-Host "Wrote $path. Read it with: smbscope plan cores $Out"
