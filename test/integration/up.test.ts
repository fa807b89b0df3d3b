/** `hyperkube up` as people start it: a process of its own, its kubeconfig used by kubectl, ended by signals. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest } from '#lib/x509/request.ts'

import { upstreamPath } from '../upstream/programs.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')
/** Upstream's own where the conformance run has built it, else the machine's. */
const KUBECTL = existsSync(upstreamPath('kubectl')) ? upstreamPath('kubectl') : 'kubectl'
const help = spawnSync(KUBECTL, ['patch', '--help'], { encoding: 'utf8' })
const whyNoKubectl = help.status === 0 ? false : 'there is no kubectl: install kubernetes-client'
/** From 1.24 on. */
const knowsSubresources = help.status === 0 && help.stdout.includes('--subresource')

const dir = mkdtempSync(join(tmpdir(), 'hyperkube-up-'))
const kubeconfig = join(dir, 'kube', 'config')
const running = new Set<ChildProcess>()
after(() => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

interface Up {
  readonly pid: number
  /** What it says when it is ready. */
  readonly ready: Promise<{ readonly apiServer: string; readonly kubeconfig: string; readonly dataDir: string }>
  readonly ended: Promise<Ended>
  kill(signal: NodeJS.Signals): void
}

function up(...args: string[]): Up {
  const all = ['up', '-o', 'json', `--data-dir=${join(dir, 'data')}`, `--kubeconfig=${kubeconfig}`, ...args]
  const child = spawn(HYPERKUBE, all, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: dir } })
  running.add(child)
  let [out, err] = ['', '']
  const ready = Promise.withResolvers<Awaited<Up['ready']>>()
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    if (out.includes('\n')) ready.resolve(JSON.parse(out.slice(0, out.indexOf('\n'))) as Awaited<Up['ready']>)
  })
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()))
  const ended = once(child, 'close').then(([code, signal]): Ended => {
    running.delete(child)
    ready.reject(new Error(`It ended with ${code ?? signal}: ${err}`))
    return { code, signal, out, err }
  })
  ready.promise.catch(() => undefined)
  return { pid: child.pid ?? 0, ready: ready.promise, ended, kill: (signal) => void child.kill(signal) }
}

async function kubectl(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(KUBECTL, [`--kubeconfig=${kubeconfig}`, ...args], {
    env: { ...process.env, HOME: dir },
  })
  return stdout.trim()
}

/** Everything that still runs with our folder on its command line. */
function leftovers(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return line.includes(dir) ? [line] : []
      } catch {
        return []
      }
    })
}

/** How long a stop may take when nothing is running: requests have 5 s to finish, and there are none. */
const STOP_MS = 4_000

async function stops(server: Up, signal: NodeJS.Signals): Promise<Ended> {
  const limit = sleep(realClock, STOP_MS).then(() => assert.fail(`It still runs ${STOP_MS} ms after ${signal}`))
  server.kill(signal)
  return Promise.race([server.ended, limit])
}

/** Ready, as its kubelet would say. */
const HAND_MADE_NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'made' },
  spec: {},
  status: {
    allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
    conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'by hand' }],
  },
}

function signingRequest(name: string, pem: string): object {
  const spec = {
    signerName: 'kubernetes.io/kube-apiserver-client',
    usages: ['client auth'],
    request: Buffer.from(pem).toString('base64'),
  }
  return { apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name }, spec }
}

describe('hyperkube up', () => {
  it('starts a cluster, tells where it is, and leaves nothing behind when it is stopped', async () => {
    const server = up('--secure-port=0')
    const ready = await server.ready
    assert.match(ready.apiServer, /^https:\/\/127\.0\.0\.1:\d+$/)
    assert.deepEqual([ready.kubeconfig, ready.dataDir], [kubeconfig, join(dir, 'data')])
    assert.equal(statSync(kubeconfig).mode & 0o777, 0o600)
    assert.equal(statSync(join(dir, 'data')).mode & 0o777, 0o700)
    assert.equal(statSync(join(dir, 'data', 'pki', 'ca.key')).mode & 0o777, 0o600)
    assert.match(readFileSync(kubeconfig, 'utf8'), /current-context: hyperkube/)
    if (whyNoKubectl === false) {
      assert.match(await kubectl('get', 'namespaces', '-o', 'name'), /^namespace\/default\n/)
      assert.equal(await kubectl('auth', 'can-i', '*', '*'), 'yes')
      await kubectl('create', 'configmap', 'kept', '--from-literal=a=b')
    }
    const { code, err } = await stops(server, 'SIGTERM')
    assert.equal(code, 0, err)
    assert.deepEqual(leftovers(), [])
    assert.deepEqual(
      readdirSync(join(dir, 'data')).filter((name) => /-wal|-shm|\.new/.test(name)),
      [],
    )
  })

  it(
    'goes on with the cluster it finds, which kubectl can scale, whose controllers make pods and sign certificates and whose scheduler binds',
    { skip: whyNoKubectl },
    async () => {
      const server = up('--secure-port=0')
      await server.ready
      assert.equal(await kubectl('get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}'), 'b')
      await kubectl('create', 'deployment', 'web', '--image=i', '--replicas=2')
      assert.equal(await kubectl('scale', 'deployment', 'web', '--replicas=5'), 'deployment.apps/web scaled')
      const path = '/apis/apps/v1/namespaces/default/deployments/web/scale'
      const scale = JSON.parse(await kubectl('get', '--raw', path)) as { spec: { replicas: number } }
      assert.equal(scale.spec.replicas, 5)
      if (knowsSubresources) {
        assert.match(
          await kubectl('get', 'deployment', 'web', '--subresource=scale'),
          /^NAME +DESIRED +AVAILABLE +AGE\nweb +5 +\d/,
        )
        const replicas = '{"spec":{"replicas":7}}'
        await kubectl('patch', 'deployment', 'web', '--subresource=scale', '--type=merge', '-p', replicas)
      } else {
        const file = join(dir, 'scale.json')
        writeFileSync(file, JSON.stringify({ ...scale, spec: { replicas: 7 } }))
        await kubectl('replace', '--raw', path, '-f', file)
      }
      assert.equal(await kubectl('get', 'deployment', 'web', '-o', 'jsonpath={.spec.replicas}'), '7')
      let pods: string[] = []
      for (let tries = 0; tries < 100 && pods.length !== 7; tries++) {
        pods = (await kubectl('get', 'pods', '-l', 'app=web', '-o', 'name')).split('\n')
      }
      assert.equal(pods.length, 7, 'its controllers make the pods')
      const nodeFile = join(dir, 'node.json')
      writeFileSync(nodeFile, JSON.stringify(HAND_MADE_NODE))
      await kubectl('create', '-f', nodeFile)
      let places: string[] = []
      for (let tries = 0; tries < 100 && places.length !== 7; tries++)
        places = (await kubectl('get', 'pods', '-l', 'app=web', '-o', 'jsonpath={.items[*].spec.nodeName}')).split(' ')
      assert.deepEqual(new Set(places), new Set(['made']), 'its scheduler binds them')
      const request = createRequest({ commonName: 'jane' }, createKey())
      const file = join(dir, 'request.json')
      writeFileSync(file, JSON.stringify(signingRequest('jane', request.pem)))
      await kubectl('create', '-f', file)
      await kubectl('certificate', 'approve', 'jane')
      let certificate = ''
      for (let tries = 0; tries < 100 && certificate === ''; tries++)
        certificate = await kubectl('get', 'csr', 'jane', '-o', 'jsonpath={.status.certificate}')
      const { subject, issuer } = parseCertificate(Buffer.from(certificate, 'base64').toString())
      assert.deepEqual([subject.commonName, issuer.commonName], ['jane', 'kubernetes'])
      const { code } = await stops(server, 'SIGINT')
      assert.equal(code, 0)
    },
  )

  it('says so when the port is taken, and ends', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as AddressInfo
    try {
      const { code, err } = await up(`--secure-port=${port}`).ended
      assert.equal(code, 1)
      assert.match(
        err,
        new RegExp(`Port ${port} is in use; is another cluster running\\? Choose another with --secure-port`),
      )
      assert.deepEqual(leftovers(), [])
    } finally {
      holder.close()
    }
  })
})
