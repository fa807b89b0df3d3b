/**
 * Accepts forwarded pod traffic on machines with a FORWARD policy of DROP (Docker sets one). A separate table cannot
 * override that, so two rules are appended to FORWARD through flannel's own chain.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const CHAIN = 'FLANNEL-FWD'
const run = promisify(execFile)

/** `-w` waits for the xtables lock. Keeps existing rules. */
export async function ensureForwarding(program: 'iptables' | 'ip6tables', network: string): Promise<void> {
  await run(program, ['-w', '-N', CHAIN]).catch(() => undefined)
  for (const [chain, ...rule] of forwardRules(network)) {
    const isThere = await run(program, ['-w', '-C', chain, ...rule]).then(
      () => true,
      () => false,
    )
    if (!isThere) await run(program, ['-w', '-A', chain, ...rule])
  }
}

/** Also removes leftovers of an earlier attempt. */
export async function removeForwarding(program: 'iptables' | 'ip6tables'): Promise<void> {
  for (const args of [
    ['-D', ...JUMP],
    ['-F', CHAIN],
    ['-X', CHAIN],
  ])
    await run(program, ['-w', ...args]).catch(() => undefined)
}

const COMMENT = ['-m', 'comment', '--comment', 'flanneld forward'] as const
const JUMP = ['FORWARD', ...COMMENT, '-j', CHAIN] as const

export function forwardRules(network: string): readonly (readonly [chain: string, ...rule: string[]])[] {
  return [JUMP, [CHAIN, '-s', network, ...COMMENT, '-j', 'ACCEPT'], [CHAIN, '-d', network, ...COMMENT, '-j', 'ACCEPT']]
}
