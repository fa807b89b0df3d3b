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

export function forwardRules(network: string): readonly (readonly [chain: string, ...rule: string[]])[] {
  const comment = ['-m', 'comment', '--comment', 'flanneld forward']
  return [
    ['FORWARD', ...comment, '-j', CHAIN],
    [CHAIN, '-s', network, ...comment, '-j', 'ACCEPT'],
    [CHAIN, '-d', network, ...comment, '-j', 'ACCEPT'],
  ]
}
