/** The script that takes away what is ours of a table, and leaves what others lead to. Pure. */
import type { IptablesTable } from '#lib/iptables.ts'

import { chainsIn } from './ledger.ts'
import { isServiceChain } from './names.ts'
import { CANARY, chainLine, isJump, JUMPS, TOP_CHAINS } from './skeleton.ts'

/** `saved`: all lines of the table. Undefined: there is nothing of ours. */
export function removalOf(table: IptablesTable, saved: readonly string[]): string | undefined {
  const top = table === 'mangle' ? [] : TOP_CHAINS[table]
  const isOwn = (name: string): boolean =>
    name === CANARY || top.includes(name) || (table === 'nat' && isServiceChain(name))
  const jumps = saved.filter((line) => JUMPS.some((one) => one.table === table && isJump(line, one)))
  const chains = chainsIn(saved).filter(isOwn)
  if (jumps.length === 0 && chains.length === 0) return undefined
  const foreign = new Set(saved.filter((line) => !jumps.includes(line)).flatMap((line) => leadsTo(line, isOwn)))
  return [
    `*${table}`,
    ...chains.map(chainLine),
    ...jumps.map((line) => line.replace(/^-A /, '-D ')),
    // One that somebody else's rule leads to is emptied: the kernel would refuse to take it away.
    ...chains.filter((name) => !foreign.has(name)).map((name) => `-X ${name}`),
    'COMMIT',
    '',
  ].join('\n')
}

function leadsTo(line: string, isOwn: (name: string) => boolean): string[] {
  const [, from = '', to = ''] = /^-A (\S+) .*-[jg] (\S+)/.exec(line) ?? []
  return from !== '' && !isOwn(from) ? [to] : []
}
