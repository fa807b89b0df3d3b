/** The name servers of the machine, as its `resolv.conf` has them now. */
import { parseIp } from '#lib/cidr.ts'
import type { Clock } from '#lib/clock.ts'

import type { Upstream } from './forwarder.ts'

const PORT = 53
/** Machines change networks. */
const REREAD_MS = 5000

/** Pure: those that are addresses, but for `own`, of whom to ask would be to go round in circles. */
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
  /** Where we are reached ourselves. */
  readonly own: ReadonlySet<string>
}

/** Returns what tells those that are known; who asks has the file read again when that was long ago. */
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
    // A machine without the file has nobody to ask.
    servers = serversIn(await readFile(path).catch(() => ''), own)
  }
  await read()
  return () => {
    if (clock.elapsed() - readMs > REREAD_MS) void read()
    return servers
  }
}
