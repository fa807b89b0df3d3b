/**
 * Starts a kube-apiserver, ours or upstream's, as a process with the same certificates and flags, and waits until it is
 * ready.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { createPublicKey } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, open, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { createServer } from 'node:net'
import { join } from 'node:path'

import { openLocalPki, pkiFolder } from '#cluster/local-pki.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'

const READY_POLL_MS = 5

/** PEM: whom to trust, and an administrator. */
export interface AdminTls {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface PreparedServer {
  readonly port: number
  readonly tls: AdminTls
  /** All that both makes take; where the objects are is for the caller to add. */
  readonly flags: readonly string[]
}

/** Certificates in `folder` (made when they are not there) and a free port. */
export async function prepareServer(folder: string): Promise<PreparedServer> {
  const path = join(folder, 'pki')
  const hosts = ['127.0.0.1', 'localhost']
  const pki = await openLocalPki({ files: pkiFolder(path), hosts, clock: realClock, random: secureRandom })
  const publicKey = createPublicKey(pki.serviceAccountKey).export({ type: 'spki', format: 'pem' })
  await writeFile(join(path, 'sa.pub'), publicKey)
  const port = await freePort()
  const tls = { ca: pki.ca.certificatePem, cert: pki.admin.certificate, key: pki.admin.key }
  return { port, tls, flags: serverFlags(path, port) }
}

function serverFlags(pki: string, port: number): string[] {
  const file = (name: string): string => join(pki, name)
  const flags = {
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

/** The flags for aggregated servers, with the certificates that `prepareServer` created in `folder`. */
export function frontProxyFlags(folder: string): string[] {
  const file = (name: string): string => join(folder, 'pki', name)
  const flags = {
    'requestheader-client-ca-file': file('front-proxy-ca.crt'),
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-username-headers': 'X-Remote-User',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'proxy-client-cert-file': file('front-proxy-client.crt'),
    'proxy-client-key-file': file('front-proxy-client.key'),
  }
  return Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
}

export interface OwnServer {
  readonly port: number
  readonly tls: AdminTls
  stop(): Promise<void>
}

/** Ours, from the sources, with its objects in memory; to be compared by what it answers, not by how fast. */
export async function startOwn(folder: string): Promise<OwnServer> {
  const prepared = await prepareServer(folder)
  const entry = join(import.meta.dirname, '../../src/cmd/entry.ts')
  const flags = [...prepared.flags, '--datastore=memory']
  const args = ['--disable-warning=ExperimentalWarning', entry, 'kube-apiserver', ...flags]
  const child = await launch(process.execPath, args, join(folder, 'hyperkube.log'))
  await untilReady(prepared, child)
  return { ...prepared, stop: () => end(child, 'SIGTERM') }
}

/** Appends its output to `log`. */
export async function launch(program: string, args: readonly string[], log: string): Promise<ChildProcess> {
  await mkdir(join(log, '..'), { recursive: true })
  const file = await open(log, 'a')
  const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch }
  const child = spawn(program, args, { env, stdio: ['ignore', file.fd, file.fd] })
  await once(child, 'spawn')
  await file.close()
  return child
}

/** Rejects when it ends before it is ready. */
export async function untilReady({ port, tls }: PreparedServer, server: ChildProcess): Promise<void> {
  while ((await statusOf(port, tls)) !== 200) {
    if (server.exitCode !== null) throw new Error(`kube-apiserver ended with ${server.exitCode} before it was ready`)
    await sleep(realClock, READY_POLL_MS)
  }
}

export async function end(child: ChildProcess, signal: 'SIGTERM' | 'SIGINT' | 'SIGKILL'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** The status of /readyz; 0 while the port is closed. */
function statusOf(port: number, tls: AdminTls): Promise<number> {
  return new Promise((resolve) => {
    const asking = request({ host: '127.0.0.1', port, path: '/readyz', agent: false, ...tls }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    asking.on('error', () => resolve(0))
    asking.end()
  })
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('A listening socket has no port')
  return address.port
}
