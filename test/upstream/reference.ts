/** Starts the reference: upstream's kube-apiserver on etcd, with default settings except for the given flags. */
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'

import { etcdProgram, startEtcd } from './etcd.ts'
import { type AdminTls, end, launch, prepareServer, untilReady } from './kube-apiserver.ts'
import { upstreamPrograms } from './programs.ts'

export interface Reference {
  readonly port: number
  readonly tls: AdminTls
  /** kube-apiserver and etcd: neither works without the other. */
  readonly pids: readonly number[]
  readonly readyMs: number
  stop(): Promise<void>
}

/** Its files and logs are in `folder`, which is its own; started there again, it goes on with what it has stored. */
export async function startReference(folder: string, more: readonly string[] = []): Promise<Reference> {
  const programs = await upstreamPrograms(['kube-apiserver'], (line) => process.stderr.write(`${line}\n`))
  const prepared = await prepareServer(folder)
  const { port, tls } = prepared
  const log = join(folder, 'reference.log')
  await etcdProgram()
  const start = realClock.elapsed()
  const { url, program: etcd } = await startEtcd(folder)
  const flags = [...prepared.flags, `--etcd-servers=${url}`, ...more]
  const server = await launch(programs['kube-apiserver'], flags, log)
  const stop = async (): Promise<void> => {
    await end(server, 'SIGKILL')
    await end(etcd, 'SIGTERM')
  }
  try {
    await untilReady(prepared, server)
  } catch (cause) {
    await stop()
    throw new Error(`The reference did not start; its log is ${log}`, { cause })
  }
  return { port, tls, pids: [server.pid ?? 0, etcd.pid ?? 0], readyMs: realClock.elapsed() - start, stop }
}
