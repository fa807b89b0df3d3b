/**
 * Enables br_netfilter, so that bridged packets between pods of one node pass the IP rules. Services also need it for
 * replies, and kubeadm requires it. An nftables table of the bridge family would not work: it sees packets before
 * Service translation, and replies without connection tracking.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Each network namespace has its own. */
const SWITCHES = ['net.bridge.bridge-nf-call-iptables', 'net.bridge.bridge-nf-call-ip6tables']

/**
 * Returns whether they had to be enabled. Rejects if the kernel lacks them. `within` prefixes programs, as in `ip netns
 * exec <name>`.
 */
export async function enableBridgeNetfilter(within: readonly string[] = []): Promise<boolean> {
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
