@echo off
rem Records for {SECONDS} seconds what the processors of this machine do. smbscope reads the result on any system:
rem     smbscope report cpu.etl
rem Written by smbscope {VERSION} (record --print-windows-script). Run it in a console of an administrator. It uses
rem xperf.exe of the Windows Performance Toolkit, in the PATH, next to this file, or where the Windows ADK puts it; without
rem it wpr.exe, which Windows 10, Server 2016 and later have. It changes no setting. If it is interrupted, the recording
rem continues until: xperf -stop -stop smbscope_power   or: wpr -cancel
setlocal
set "TO={TO}"
set "NODE={NODE}"
set "SECONDS={SECONDS}"
rem Megabytes of the file at most, and what must be free: the file, and the merged one.
set "FILE_MB={FILE_MB}"
set "FREE_MB={FREE_MB}"

{START}
set "PATH=%PATH%;%~dp0;%ProgramFiles(x86)%\Windows Kits\10\Windows Performance Toolkit"
set "TOOL=xperf"
where xperf >nul 2>&1
if not "%errorlevel%"=="0" set "TOOL=wpr"
where %TOOL% >nul 2>&1
if not "%errorlevel%"=="0" (
    echo There is neither xperf.exe nor wpr.exe: install the Windows Performance Toolkit of the Windows ADK, or put xperf.exe and perfctrl.dll next to this file.
    exit /b 1
)

rem There is one kernel logger only. Do not end that of somebody else.
logman query "NT Kernel Logger" -ets >nul 2>&1
if "%errorlevel%"=="0" (
    echo The kernel logger is in use. If nobody needs that recording, end it with: logman stop "NT Kernel Logger" -ets
    exit /b 1
)

{FOLDER}
{WAIT}
if "%TOOL%"=="wpr" goto wpr

rem Windows 7 and Server 2008 R2 (6.1) walk no stacks of 64-bit code while kernel code can be paged out. Later ones need
rem nothing. To change it, and to undo it with /d 0; both after a restart only:
rem     reg add "HKLM\System\CurrentControlSet\Control\Session Manager\Memory Management" /v DisablePagingExecutive /t REG_DWORD /d 1 /f
ver | findstr /c:" 6.1." >nul 2>&1
if "%errorlevel%"=="0" echo Stacks of 64-bit code need DisablePagingExecutive on this version of Windows: see the text of this script.

rem PROC_THREAD and LOADER give names to threads and drivers, INTERRUPT and DPC are each routine with its duration, CSWITCH
rem shows idle time, PROFILE samples each processor a thousand times a second, with stacks.
rem Memory is bounded: 256 to 1024 buffers of 1024 KB. The file is written as it goes, sequentially, and ends at its limit.
%RUN% xperf -on PROC_THREAD+LOADER+INTERRUPT+DPC+CSWITCH+PROFILE -stackwalk Profile -BufferSize 1024 -MinBuffers 256 -MaxBuffers 1024 -MaxFile %FILE_MB% -FileMode Sequential -f "%TO%\cpu-kernel.etl"
if not "%errorlevel%"=="0" exit /b 1

rem Frequencies of processors (keywords Perf and PerfDiag) are events of a provider, in a logger of their own. Without
rem it the recording is the same but for them.
set "POWER="
%RUN% xperf -start smbscope_power -on Microsoft-Windows-Kernel-Processor-Power:0x81:5 -BufferSize 256 -MaxFile 256 -FileMode Sequential -f "%TO%\cpu-power.etl" >nul 2>&1
if "%errorlevel%"=="0" set "POWER=-stop smbscope_power"
echo Recording for %SECONDS% seconds ...
%RUN% powershell -NoProfile -Command "Start-Sleep -Seconds %SECONDS%"

rem Ends both loggers, and merges their files with what names drivers and their symbols.
%RUN% xperf -stop %POWER% -d "%TO%\cpu.etl"
if not "%errorlevel%"=="0" (
    echo The recording was not merged; %TO%\cpu-kernel.etl can be read, too.
    exit /b 1
)
del "%TO%\cpu-kernel.etl"
if defined POWER del "%TO%\cpu-power.etl"
echo Written: %TO%\cpu.etl
exit /b 0

:wpr
rem The profile CPU has interrupts, DPCs, context switches and samples with stacks. In a file, not in memory: in memory it
rem would take a part of all of it. The file has no limit but the time.
%RUN% wpr -start CPU -filemode -recordtempto "%TO%"
if not "%errorlevel%"=="0" %RUN% wpr -start CPU -filemode
if not "%errorlevel%"=="0" (
    echo wpr did not start. If another recording of wpr runs that nobody needs, end it with: wpr -cancel
    exit /b 1
)
echo Recording for %SECONDS% seconds ...
%RUN% powershell -NoProfile -Command "Start-Sleep -Seconds %SECONDS%"
%RUN% wpr -stop "%TO%\cpu.etl"
if not "%errorlevel%"=="0" exit /b 1
echo Written: %TO%\cpu.etl
