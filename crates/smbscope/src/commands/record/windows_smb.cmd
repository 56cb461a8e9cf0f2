@echo off
rem Records for {SECONDS} seconds what the SMB server of this machine does, and its packets. smbscope reads the results on
rem any system:
rem     smbscope report server.etl
rem Written by smbscope {VERSION} (record --print-windows-script --what smb). Run it in a console of an administrator. It
rem needs nothing that Windows (Server 2012 R2 or later, 8.1 or later) does not have. It changes no setting. If it is
rem interrupted, the recordings continue until: logman stop smbscope -ets   and: netsh trace stop
setlocal
set "TO={TO}"
set "SECONDS={SECONDS}"
rem Megabytes of each file at most, and what must be free: two files, and what netsh adds to its own.
set "FILE_MB={FILE_MB}"
set "FREE_MB={FREE_MB}"

rem fltmc works for administrators only.
fltmc >nul 2>&1
if errorlevel 1 (
    echo Run this in a console of an administrator.
    exit /b 1
)
logman query smbscope -ets >nul 2>&1
if not errorlevel 1 (
    echo A recording of smbscope runs already. If nobody needs it, end it with: logman stop smbscope -ets
    exit /b 1
)
netsh trace show status 2>nul | findstr /i /c:".etl" >nul
if not errorlevel 1 (
    echo Another netsh trace runs already. If nobody needs it, end it with: netsh trace stop
    exit /b 1
)
if not exist "%TO%\" mkdir "%TO%"
powershell -NoProfile -Command "exit [int]((New-Object IO.DriveInfo '%TO%').AvailableFreeSpace -lt %FREE_MB%MB)"
if errorlevel 1 (
    echo %TO% needs %FREE_MB% MB of free space.
    exit /b 1
)

rem Events of the server: requests (0x1) and responses (0x2) with the time in its queue, in the file system, in the
rem transport and for signing, and connections (0x10), sessions (0x20), tree connects (0x40) and opens (0x80). They have
rem names of files and users, no contents. When the file is full, the oldest events are overwritten. Memory is bounded:
rem 64 to 256 buffers of 256 KB.
logman start smbscope -p Microsoft-Windows-SMBServer 0xF3 5 -o "%TO%\server.etl" -f bincirc -max %FILE_MB% -bs 256 -nb 64 256 -ct perf -ets
if errorlevel 1 exit /b 1

rem Packets, the first 256 bytes of each: headers and names, not what files contain.
netsh trace start capture=yes protocol=6 packettruncatebytes=256 report=disabled maxsize=%FILE_MB% filemode=circular overwrite=yes tracefile="%TO%\packets.etl"
if errorlevel 1 echo Packets are not recorded; the events of the server are.

rem Counters, once a second: bytes that RDMA moves past the packets, processors, disks, adapters, shares.
rem Those that this machine does not have are left out.
start "" /b typeperf "\RDMA Activity(*)\*" "\SMB Direct Connection(*)\*" "\Processor Information(*)\*" "\Network Interface(*)\*" "\PhysicalDisk(*)\*" "\SMB Server Shares(*)\*" -si 1 -sc %SECONDS% -f CSV -y -o "%TO%\counters.csv" >nul 2>&1
echo Recording for %SECONDS% seconds ...
timeout /t %SECONDS% /nobreak >nul

logman stop smbscope -ets
netsh trace stop
rem What the server and the client of this machine wrote to their event logs on their own: slow operations, refused
rem and lost connections.
wevtutil epl Microsoft-Windows-SMBServer/Operational "%TO%\SMBServer-Operational.evtx" /ow:true
wevtutil epl Microsoft-Windows-SMBClient/Connectivity "%TO%\SMBClient-Connectivity.evtx" /ow:true
echo Written to %TO%: server.etl, packets.etl, counters.csv, SMBServer-Operational.evtx, SMBClient-Connectivity.evtx
