/**
 * A checker for the subset of PowerShell used here: balanced brackets and quotes, known commands, defined variables,
 * and no interpolation or evaluation of strings. It is stricter than PowerShell.
 */

/** Allowed commands. */
const COMMANDS: ReadonlySet<string> = new Set(
  `Add-Type ConvertFrom-Json ConvertTo-Json ForEach-Object Get-Content Get-Item Get-NetFirewallRule Get-NetIPAddress
  Get-AuthenticodeSignature Get-NetIPInterface Get-NetRoute Get-Process Get-Service Join-Path New-NetFirewallRule New-NetRoute New-Object New-Service Out-Null
  Remove-Item Remove-NetFirewallRule Select-Object Start-Service Stop-Process Stop-Service Wait-Process Where-Object`.split(
    /\s+/,
  ),
)

/** Built-in variables of PowerShell, and the pipeline variable. */
const GIVEN: ReadonlySet<string> = new Set(
  '_ true false null in ErrorActionPreference ProgressPreference PSScriptRoot LASTEXITCODE'
    .split(' ')
    .map((name) => name.toLowerCase()),
)

const PAIRS: Readonly<Record<string, string>> = { ')': '(', ']': '[', '}': '{' }

/** The problems; empty if well formed. */
export function checkPowerShell(text: string): string[] {
  const complaints: string[] = []
  const code = withoutTexts(text, complaints)
  return [...complaints, ...checkBrackets(code), ...checkCommands(code), ...checkVariables(code)]
}

/** Replaces strings and comments with empty ones. */
function withoutTexts(text: string, complaints: string[]): string {
  const bare = text
    .replaceAll(/@'\n[^]*?\n'@/g, `''`)
    .replaceAll(/^\s*#.*$/gm, '')
    .replaceAll(/'(?:[^'\n]|'')*'/g, `''`)
  if (/"/.test(bare)) complaints.push('double quotes put values into texts')
  if (/(?:^|[^'])'(?:[^']|$)/.test(bare)) complaints.push('a quote does not close')
  return bare
}

function checkBrackets(code: string): string[] {
  const open: string[] = []
  for (const mark of code) {
    if ('([{'.includes(mark)) open.push(mark)
    const wanted = PAIRS[mark]
    if (wanted !== undefined && open.pop() !== wanted) return [`"${mark}" was not opened`]
  }
  return open.length === 0 ? [] : [`"${open.at(-1)}" is not closed`]
}

function checkCommands(code: string): string[] {
  const used = [...code.matchAll(/(?<![\w.:$-])([A-Z][a-zA-Z]+-[A-Z]\w+)/g)].map(([, name = '']) => name)
  return [...new Set(used)].filter((name) => !COMMANDS.has(name)).map((name) => `unknown command ${name}`)
}

function checkVariables(code: string): string[] {
  const known = new Set(GIVEN)
  for (const [, name = ''] of code.matchAll(/\$(\w+)\s*(?:\+?=)(?!=)/g)) known.add(name.toLowerCase())
  // Parameters: a type before; a comma, a default or the end after.
  for (const [, name = ''] of code.matchAll(/\[(?:string|int|switch)\]\$(\w+)/g)) known.add(name.toLowerCase())
  const used = [...code.matchAll(/[$@](\w+)/g)].map(([, name = '']) => name)
  return [...new Set(used)].filter((name) => !known.has(name.toLowerCase())).map((name) => `unknown variable $${name}`)
}
