/** The reference: upstream's kube-apiserver on an etcd of its own, both with their defaults unless they are told otherwise. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { realClock } from '#lib/clock.ts'

import { type AdminTls, end, freePort, launch, prepareServer, untilReady } from './kube-apiserver.ts'
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
  const [etcdPort, peerPort] = await Promise.all([freePort(), freePort()])
  const log = join(folder, 'reference.log')
  await mkdir(join(folder, 'etcd'), { mode: 0o700, recursive: true })
  const start = realClock.elapsed()
  const etcd = await launch('etcd', etcdFlags(join(folder, 'etcd'), etcdPort, peerPort), log)
  const flags = [...prepared.flags, `--etcd-servers=http://127.0.0.1:${etcdPort}`, ...more]
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

export function etcdFlags(folder: string, port: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${peerPort}`
  const urls = ['--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer]
  const cluster = ['--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`]
  return ['--data-dir', folder, ...urls, ...cluster]
}
