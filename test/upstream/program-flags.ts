/**
 * Compares the flags in the help of upstream's programs with those recorded in test/kits/cmd/upstream-flags.json: `node
 * test/upstream/program-flags.ts [--write]`. Unit tests compare our flags with that file. Exits with 1 on a difference;
 * `--write` records it instead.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

import { upstreamPrograms } from './programs.ts'

type Groups = Record<string, string[]>

const RECORD = new URL('../kits/cmd/upstream-flags.json', import.meta.url)
/** Its usage has the name of a profile in back quotes, which help then prints as the type. */
const BOOL = 'seccomp-default'
/** The record of kube-apiserver has Go's types, which its help does not print. */
const PROGRAMS = ['kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubelet'] as const

const { values: options } = parseArgs({ options: { write: { type: 'boolean', default: false } } })
const log = (line: string): boolean => process.stdout.write(`${line}\n`)

/** Rows of name, type and default. Help in one group has no title; `help` and `version` are flags of every program. */
function flagsIn(help: string, program: string): Groups {
  const groups: Groups = {}
  let rows: string[] = []
  for (const flag of help.replaceAll(/\n {20,}/g, ' ').split('\n')) {
    const title = /^(?:(\w[\w -]*) flags|Flags):$/.exec(flag)
    if (title !== null) rows = groups[title[1] === undefined ? program : lowerFirst(title[1])] ??= []
    const row = rowOf(flag)
    if (row !== undefined) rows.push(row)
  }
  delete groups['global']
  return groups
}

function rowOf(line: string): string | undefined {
  const [, name = '', hint = 'bool', usage = ''] = /^\s+(?:-\w, )?--([\w-]+)(?: (\S+))?\s{2,}(.*)$/.exec(line) ?? []
  if (name === '' || name === 'help' || name === 'version') return undefined
  const initial = /\(default (.*?)\)(?: \(DEPRECATED: .*\))?$/.exec(usage)?.[1]?.replace(/^"(.*)"$/, '$1') ?? ''
  return [name, name === BOOL ? 'bool' : hint, ...(initial === '' ? [] : [initial.replaceAll(' ', '')])].join(' ')
}

function lowerFirst(text: string): string {
  return text.slice(0, 1).toLowerCase() + text.slice(1)
}

const paths = await upstreamPrograms(PROGRAMS, log)
const record = JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, Groups>
let count = 0
let differing = 0
for (const program of PROGRAMS) {
  const groups = flagsIn(
    spawnSync(paths[program], ['--help'], { encoding: 'utf8', maxBuffer: 1 << 24 }).stdout,
    program,
  )
  const flat = (all: Groups = {}): string[] =>
    Object.entries(all).flatMap(([group, rows]) => rows.map((row) => `${group}: ${row}`))
  const [theirs, known] = [flat(groups), flat(record[program])]
  count += theirs.length
  const changes = [
    ...theirs.filter((row) => !known.includes(row)).map((row) => `+ ${row}`),
    ...known.filter((row) => !theirs.includes(row)).map((row) => `- ${row}`),
  ]
  differing += changes.length
  for (const change of changes) log(`${program} ${change}`)
  record[program] = groups
}
if (options.write) writeFileSync(RECORD, `${JSON.stringify(record, null, 2)}\n`)
log(`${count} flags of ${PROGRAMS.length} programs, ${differing} rows differ from the record`)
process.exitCode = options.write || differing === 0 ? 0 : 1
