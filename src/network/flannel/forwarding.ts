/**
 * Traffic of pods is let through on machines whose administrator, or Docker, denies forwarding: no table of ours could undo
 * that, so two rules go to the end of the chain that says so, by flannel's name for theirs. Nothing else in it is touched.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

const CHAIN = 'FLANNEL-FWD'
const run = promisify(execFile)

/** `-w` waits for others who change rules. Those that are there stay. */
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

/** Also what an earlier try has left of it. */
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
