/** Writes the script that removes our chains from a table and keeps those that foreign rules use. Pure. */
import type { IptablesTable } from '#lib/net/iptables.ts'

import { chainsIn } from './ledger.ts'
import { isServiceChain } from './names.ts'
import { CANARY, chainLine, isJump, JUMPS, TOP_CHAINS } from './skeleton.ts'

/** `saved` contains all lines of the table. Undefined: nothing of ours exists. */
export function removalOf(table: IptablesTable, saved: readonly string[]): string | undefined {
  const top = table === 'mangle' ? [] : TOP_CHAINS[table]
  const isOwn = (name: string): boolean =>
    name === CANARY || top.includes(name) || (table === 'nat' && isServiceChain(name))
  const jumps = saved.filter((line) => JUMPS.some((one) => one.table === table && isJump(line, one)))
  const chains = chainsIn(saved).filter(isOwn)
  if (jumps.length === 0 && chains.length === 0) return undefined
  const foreign = new Set(saved.filter((line) => !jumps.includes(line)).flatMap((line) => jumpTargets(line, isOwn)))
  return [
    `*${table}`,
    ...chains.map(chainLine),
    ...jumps.map((line) => line.replace(/^-A /, '-D ')),
    // A chain with a foreign reference is flushed, because the kernel refuses to delete it.
    ...chains.filter((name) => !foreign.has(name)).map((name) => `-X ${name}`),
    'COMMIT',
    '',
  ].join('\n')
}

function jumpTargets(line: string, isOwn: (name: string) => boolean): string[] {
  const [, from = '', to = ''] = /^-A (\S+) .*-[jg] (\S+)/.exec(line) ?? []
  return from !== '' && !isOwn(from) ? [to] : []
}
