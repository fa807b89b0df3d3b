/** Reads the machine's name servers from `resolv.conf`, repeatedly. */

import type { Clock } from '#lib/clock.ts'
import { parseIp } from '#lib/net/cidr.ts'

import type { Upstream } from './forwarder.ts'

const PORT = 53
/** Machines may change networks. */
const REREAD_MS = 5000

/** Pure: valid addresses except `own`, which would cause a loop. */
export function serversIn(resolvConf: string, own: ReadonlySet<string>): Upstream[] {
  return resolvConf.split('\n').flatMap((line) => {
    const [word, address = ''] = line.trim().split(/\s+/)
    if (word !== 'nameserver' || parseIp(address) === undefined || own.has(address)) return []
    return [{ address, port: PORT }]
  })
}

export interface UpstreamsOptions {
  readonly clock: Clock
  readonly path: string
  readonly readFile: (path: string) => Promise<string>
  /** Our own addresses. */
  readonly own: ReadonlySet<string>
}

/** Returns a function with the current servers; a call triggers a reread if the last one is old. */
export async function watchUpstreams({
  clock,
  path,
  readFile,
  own,
}: UpstreamsOptions): Promise<() => readonly Upstream[]> {
  let servers: readonly Upstream[] = []
  let readMs = -Infinity
  const read = async (): Promise<void> => {
    readMs = clock.elapsed()
    // Without the file there are no upstreams.
    servers = serversIn(await readFile(path).catch(() => ''), own)
  }
  await read()
  return () => {
    if (clock.elapsed() - readMs > REREAD_MS) void read()
    return servers
  }
}
