/**
 * Compares the help of every command of our kubectl with upstream's: `node test/upstream/kubectl-help.ts [--show]`.
 * Commands, aliases, usage, flags, shorthands and defaults must be equal; descriptions are our own. No server is
 * needed. Exits with 1 on a difference. `--show` prints what was compared.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { type Kubectl, program, withinThisProcess } from './kubectl/sides.ts'
import { upstreamPrograms } from './programs.ts'

const { values: options } = parseArgs({ options: { show: { type: 'boolean', default: false } } })

interface Help {
  readonly usage: string
  readonly aliases: string
  /** In the order in which they are shown. */
  readonly commands: readonly string[]
  /** `-n, --namespace=''`. */
  readonly flags: readonly string[]
}

/** Headings begin at the margin and end with a colon; what is below them is indented, but for aliases. */
function read(text: string): Help {
  const sections = new Map<string, string[]>()
  let lines: string[] = []
  for (const line of text.split('\n')) {
    if (/^[A-Z][\w ()]*:$/.test(line)) sections.set(line, (lines = []))
    else lines.push(line)
  }
  const commands = [...sections].filter(([heading]) => /Commands|Subcommands/.test(heading)).flatMap(([, rows]) => rows)
  return {
    usage: (sections.get('Usage:') ?? []).find((line) => line.startsWith('  '))?.trim() ?? '',
    aliases: (sections.get('Aliases:') ?? [])[0] ?? '',
    commands: commands.flatMap((line) => /^ {2}([a-z-]+)(?: |$)/.exec(line)?.[1] ?? []),
    flags: flagsIn([
      ...(sections.get('Options:') ?? []),
      ...(sections.get('The following options can be passed to any command:') ?? []),
    ]),
  }
}

function flagsIn(lines: readonly string[]): string[] {
  return lines.flatMap((line) => /^ {4}((?:-\w, )?--[\w-]+=.*):$/.exec(line)?.[1] ?? [])
}

function differencesOf(theirs: Help, ours: Help): string[] {
  const found: string[] = []
  if (theirs.usage !== ours.usage) found.push(`- ${theirs.usage}`, `+ ${ours.usage}`)
  if (theirs.aliases !== ours.aliases) found.push(`- aliases ${theirs.aliases}`, `+ aliases ${ours.aliases}`)
  for (const part of ['commands', 'flags'] as const) {
    found.push(...theirs[part].filter((each) => !ours[part].includes(each)).map((each) => `- ${each}`))
    found.push(...ours[part].filter((each) => !theirs[part].includes(each)).map((each) => `+ ${each}`))
    const isSame = theirs[part].length === ours[part].length && found.length === 0
    if (isSame && theirs[part].join() !== ours[part].join()) found.push(`the order of ${part} differs`)
  }
  return found
}

const { kubectl } = await upstreamPrograms(['kubectl'], () => undefined)
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-kubectl-help-'))
const env = { PATH: '/usr/bin:/bin', HOME: folder, KUBECACHEDIR: join(folder, 'cache') }

async function helpOf(side: Kubectl, words: readonly string[]): Promise<Help> {
  const isOptions = words[0] === 'options'
  const args = isOptions ? words : [...words, '--help']
  const { out } = await side({ args, env, cwd: folder, stdin: '' })
  return read(out)
}

let compared = 0
let flags = 0
let different = 0

async function compare(words: readonly string[]): Promise<void> {
  const [theirs, ours] = await Promise.all([helpOf(program(kubectl), words), helpOf(withinThisProcess, words)])
  const found = differencesOf(theirs, ours)
  compared++
  flags += theirs.flags.length
  if (found.length > 0) different++
  const name = ['kubectl', ...words].join(' ')
  if (found.length > 0) process.stdout.write(`${name}\n${found.map((line) => `  ${line}\n`).join('')}`)
  else if (options.show) process.stdout.write(`${name}: ${theirs.flags.length} flags, the same\n`)
  for (const command of theirs.commands) await compare([...words, command])
}

try {
  await compare([])
  await compare(['options'])
} finally {
  await rm(folder, { recursive: true, force: true })
}
process.stdout.write(`${compared} commands, ${flags} flags: ${different} commands differ\n`)
process.exitCode = different === 0 ? 0 : 1
