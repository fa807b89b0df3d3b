/**
 * Packets between two pods of one node cross a bridge, and pass rules for IP only where the kernel is told to show them (br_netfilter).
 * Services need the same, so that answers find their way back: kubeadm asks for it too. A table of the bridge's own family would see
 * packets before Services have said where they really go, and answers without their connections.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Each network namespace has its own. */
const SWITCHES = ['net.bridge.bridge-nf-call-iptables', 'net.bridge.bridge-nf-call-ip6tables']

/**
 * Returns whether they had to be turned on. Rejects where the kernel cannot. `within` is put before programs, as in
 * `ip netns exec <name>`.
 */
export async function showBridged(within: readonly string[] = []): Promise<boolean> {
  const run = async (program: string, args: readonly string[]): Promise<string> => {
    const [first = program, ...rest] = [...within, program, ...args]
    return (await promisify(execFile)(first, rest)).stdout
  }
  const read = (): Promise<string> => run('sysctl', ['-n', ...SWITCHES])
  const found = await read().catch(async () => {
    await run('modprobe', ['br_netfilter'])
    return read()
  })
  if (
    found
      .trim()
      .split(/\s+/)
      .every((value) => value === '1')
  )
    return false
  await run('sysctl', ['-q', '-w', ...SWITCHES.map((name) => `${name}=1`)])
  return true
}
