/**
 * Builds the etcd release that upstream's Kubernetes uses, from the Go module proxy, and starts it for a server under
 * test.
 */
import type { ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

import { freePort, launch } from './kube-apiserver.ts'
import { ETCD_VERSION, upstreamPrograms } from './programs.ts'

/** For tables and logs: the etcd that results were obtained with. */
export const ETCD_NAME: string = `etcd ${ETCD_VERSION.slice(1)}`

export interface Etcd {
  readonly url: string
  readonly program: ChildProcess
}

export async function etcdProgram(): Promise<string> {
  return (await upstreamPrograms(['etcd'], (line) => process.stderr.write(`${line}\n`))).etcd
}

/** Keeps its data and its log below `folder`; a second start there continues with the stored data. */
export async function startEtcd(folder: string, flags: readonly string[] = []): Promise<Etcd> {
  const path = await etcdProgram()
  const [port, peerPort] = await Promise.all([freePort(), freePort()])
  const data = join(folder, 'etcd')
  await mkdir(data, { mode: 0o700, recursive: true })
  const program = await launch(path, [...etcdFlags(data, port, peerPort), ...flags], join(folder, 'etcd.log'))
  return { url: `http://127.0.0.1:${port}`, program }
}

function etcdFlags(folder: string, port: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${peerPort}`
  const urls = ['--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer]
  const cluster = ['--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`]
  return ['--data-dir', folder, ...urls, ...cluster]
}
