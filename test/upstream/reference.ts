/** The reference: upstream's kube-apiserver on an etcd of its own, both with their defaults. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { openLocalPki } from '#supervisor/local-pki.ts'

import { upstreamPrograms } from './programs.ts'

const READY_POLL_MS = 20

export interface Reference {
  readonly port: number
  /** PEM: whom to trust, and an administrator. */
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string }
  /** kube-apiserver and etcd: neither works without the other. */
  readonly pids: readonly number[]
  readonly readyMs: number
  stop(): Promise<void>
}

/** Its files and logs are in `folder`, which is its own. */
export async function startReference(folder: string): Promise<Reference> {
  const programs = await upstreamPrograms(['kube-apiserver'], (line) => process.stderr.write(`${line}\n`))
  const pkiFolder = join(folder, 'pki')
  const hosts = ['127.0.0.1', 'localhost']
  const pki = await openLocalPki({ folder: pkiFolder, hosts, clock: realClock, random: secureRandom })
  const publicKey = createPublicKey(pki.serviceAccountKey).export({ type: 'spki', format: 'pem' })
  await writeFile(join(pkiFolder, 'sa.pub'), publicKey)
  const [port, etcdPort, peerPort] = await Promise.all([freePort(), freePort(), freePort()])
  await mkdir(join(folder, 'etcd'), { mode: 0o700 })
  const start = realClock.elapsed()
  const etcd = await launch('etcd', etcdFlags(join(folder, 'etcd'), etcdPort, peerPort), folder)
  const server = await launch(programs['kube-apiserver'], serverFlags(pkiFolder, port, etcdPort), folder)
  const tls = { ca: pki.ca.certificatePem, cert: pki.admin.certificate, key: pki.admin.key }
  const stop = async (): Promise<void> => {
    for (const child of [server, etcd]) await kill(child)
  }
  try {
    await untilReady(port, tls, server)
  } catch (cause) {
    await stop()
    throw new Error(`The reference did not start; its log is ${join(folder, 'reference.log')}`, { cause })
  }
  return { port, tls, pids: [server.pid ?? 0, etcd.pid ?? 0], readyMs: realClock.elapsed() - start, stop }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

function etcdFlags(folder: string, port: number, peerPort: number): string[] {
  const client = `http://127.0.0.1:${port}`
  const peer = `http://127.0.0.1:${peerPort}`
  const urls = ['--listen-client-urls', client, '--advertise-client-urls', client, '--listen-peer-urls', peer]
  const cluster = ['--initial-advertise-peer-urls', peer, '--initial-cluster', `default=${peer}`]
  return ['--data-dir', folder, ...urls, ...cluster]
}

function serverFlags(pki: string, port: number, etcdPort: number): string[] {
  const file = (name: string): string => join(pki, name)
  const flags = {
    'etcd-servers': `http://127.0.0.1:${etcdPort}`,
    'secure-port': String(port),
    'bind-address': '127.0.0.1',
    'endpoint-reconciler-type': 'none',
    'service-cluster-ip-range': '10.0.0.0/24',
    'authorization-mode': 'Node,RBAC',
    'tls-cert-file': file('apiserver.crt'),
    'tls-private-key-file': file('apiserver.key'),
    'client-ca-file': file('ca.crt'),
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'service-account-key-file': file('sa.pub'),
    'service-account-signing-key-file': file('sa.key'),
  }
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
}

async function launch(program: string, args: readonly string[], folder: string): Promise<ChildProcess> {
  const log = await open(join(folder, 'reference.log'), 'a')
  const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch }
  const child = spawn(program, args, { env, stdio: ['ignore', log.fd, log.fd] })
  await once(child, 'spawn')
  await log.close()
  return child
}

async function untilReady(port: number, tls: Reference['tls'], server: ChildProcess): Promise<void> {
  while ((await statusOf(port, tls)) !== 200) {
    if (server.exitCode !== null) throw new Error(`kube-apiserver ended with ${server.exitCode} before it was ready`)
    await sleep(realClock, READY_POLL_MS)
  }
}

/** 0 while nobody listens. */
function statusOf(port: number, tls: Reference['tls']): Promise<number> {
  return new Promise((resolve) => {
    const asking = request({ host: '127.0.0.1', port, path: '/readyz', agent: false, ...tls }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asking.on('error', () => resolve(0))
    asking.end()
  })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('A listening socket has no port')
  return address.port
}
