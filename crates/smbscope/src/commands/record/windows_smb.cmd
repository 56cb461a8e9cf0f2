@echo off
rem Records for {SECONDS} seconds what the SMB {SIDE} of this machine does, and its packets. Copy the folder to any system;
rem smbscope reads all of it together:
rem     smbscope report FOLDER
rem Written by smbscope {VERSION} (record --print-windows-script --what {WHAT}). Run it in a console of an administrator. It
rem needs nothing that Windows ({SINCE}) does not have. It changes no setting. If it is
rem interrupted, the recordings continue until: logman stop smbscope -ets   and: netsh trace stop
setlocal
set "TO={TO}"
set "NODE={NODE}"
set "SECONDS={SECONDS}"
rem Megabytes of each file at most, and what must be free: two files, and what netsh adds to its own.
set "FILE_MB={FILE_MB}"
set "FREE_MB={FREE_MB}"

{START}
logman query smbscope -ets >nul 2>&1
if "%errorlevel%"=="0" (
    echo A recording of smbscope runs already. If nobody needs it, end it with: logman stop smbscope -ets
    exit /b 1
)
netsh trace show status 2>nul | findstr /i /c:".etl" >nul
if "%errorlevel%"=="0" (
    echo Another netsh trace runs already. If nobody needs it, end it with: netsh trace stop
    exit /b 1
)
{FOLDER}
{WAIT}
{EVENTS}
if not "%errorlevel%"=="0" exit /b 1

rem Packets, the first 256 bytes of each: headers and names, not what files contain. The driver of netsh is bound to the
rem adapters when it starts and ends, which pauses each of them for a moment. Where it does not start, the packet monitor
rem records (Windows 10 2004, Server 2022 and later).
set "PACKETS=netsh trace stop"
netsh trace start capture=yes protocol=6 packettruncatebytes=256 report=disabled maxsize=%FILE_MB% filemode=circular overwrite=yes tracefile="%TO%\packets.etl"
if "%errorlevel%"=="0" goto recording
set "PACKETS=pktmon stop"
pktmon start --capture --pkt-size 256 --file-size %FILE_MB% --file-name "%TO%\packets.etl"
if "%errorlevel%"=="0" goto recording
set "PACKETS=rem"
echo Packets are not recorded; the events of the {SIDE} are.

:recording
rem Counters, once a second: bytes that RDMA moves past the packets, processors, disks, adapters, shares.
rem Those that this machine does not have are left out. If it ends early, the rest of the time is waited for.
echo Recording for %SECONDS% seconds ...
for /f %%t in ('powershell -NoProfile -Command "[DateTime]::UtcNow.AddSeconds(%SECONDS%).Ticks"') do set "END=%%t"
%RUN% typeperf "\RDMA Activity(*)\*" "\SMB Direct Connection(*)\*" "\Processor Information(*)\*" "\Network Interface(*)\*" "\PhysicalDisk(*)\*" "\SMB Server Shares(*)\*" -si 1 -sc %SECONDS% -f CSV -y -o "%TO%\counters.csv" >nul 2>&1
%RUN% powershell -NoProfile -Command "$left = ([long]'%END%' - [DateTime]::UtcNow.Ticks) / 10000; if ($left -gt 0) { Start-Sleep -Milliseconds $left }"

logman stop smbscope -ets
%PACKETS%
rem What the server and the client of this machine wrote to their event logs on their own: slow operations, refused
rem and lost connections, clients that cannot sign or encrypt. Older versions do not have all of these logs.
for %%L in (Operational Connectivity Security Audit) do (
    wevtutil epl Microsoft-Windows-SMBServer/%%L "%TO%\SMBServer-%%L.evtx" /ow:true >nul 2>&1
    wevtutil epl Microsoft-Windows-SMBClient/%%L "%TO%\SMBClient-%%L.evtx" /ow:true >nul 2>&1
)
rem Of the log System only that the firmware limited a processor.
wevtutil epl System "%TO%\System.evtx" /q:"*[System[Provider[@Name='Microsoft-Windows-Kernel-Processor-Power'] and EventID=37]]" /ow:true >nul 2>&1
echo Written to %TO%: {SIDE}.etl, packets.etl, counters.csv, and event logs (.evtx)
