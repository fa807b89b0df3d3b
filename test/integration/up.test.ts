/** Tests `hyperkube up` as a separate process, used by kubectl through its kubeconfig and ended by signals. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { promisify } from 'node:util'

import { up as upProgram } from '#cmd/cluster/up.ts'
import { runProgram } from '#kits/cmd/run-program.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
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
  /** The JSON line that it prints when it is ready. */
  readonly ready: Promise<{
    readonly apiServer: string
    readonly kubeconfig: string
    readonly context: string
    readonly dataDir: string
    readonly nodes: number
  }>
  readonly ended: Promise<Ended>
  kill(signal: NodeJS.Signals): void
}

function up(...args: string[]): Up {
  const all = [
    'up',
    '--runtime=simulated',
    '-o',
    'json',
    `--data-dir=${join(dir, 'data')}`,
    `--kubeconfig=${kubeconfig}`,
    ...args,
  ]
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
  it('starts a cluster, prints its address, and leaves no process when it is stopped', async () => {
    const server = up('--secure-port=0')
    const ready = await server.ready
    assert.match(ready.apiServer, /^https:\/\/127\.0\.0\.1:\d+$/)
    assert.deepEqual([ready.kubeconfig, ready.dataDir, ready.nodes], [kubeconfig, join(dir, 'data'), 1])
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
    'continues an existing cluster: kubectl scales, controllers create pods and sign certificates, the scheduler binds pods',
    { skip: whyNoKubectl },
    async () => {
      const server = up('--secure-port=0', '--nodes=0')
      await server.ready
      // Of the run before, whose kubelet is no more.
      await kubectl('delete', 'node', '--all')
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

  it('fails if the port is in use', async () => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as AddressInfo
    try {
      const { code, err } = await up(`--secure-port=${port}`).ended
      assert.equal(code, 1)
      assert.match(
        err,
        new RegExp(`Port ${port} is in use; is another cluster running\\? Set another port with --secure-port`),
      )
      assert.deepEqual(leftovers(), [])
    } finally {
      holder.close()
    }
  })

  it('reports an invalid kubeconfig or a data directory in use before it changes anything', async () => {
    const broken = join(dir, 'broken')
    writeFileSync(broken, 'clusters: [')
    const { code, err } = await up('--secure-port=0', `--data-dir=${join(dir, 'other')}`, `--kubeconfig=${broken}`)
      .ended
    assert.deepEqual(
      [code, err],
      [1, `Error: "${broken}" is not a kubeconfig; move it away or choose another file with --kubeconfig\n`],
    )
    const server = up('--secure-port=0')
    await server.ready
    const second = await up('--secure-port=0').ended
    assert.equal(second.code, 1)
    assert.match(
      second.err,
      new RegExp(
        `^Error: A cluster is running in \\S+data already \\(process ${server.pid}\\); "hyperkube down --data-dir=\\S+data" stops it`,
      ),
    )
    await stops(server, 'SIGTERM')
  })

  it('stops while it waits for nodes, without printing that it is ready', async () => {
    const place = join(dir, 'early')
    const where = [`--data-dir=${place}`, `--kubeconfig=${join(place, 'kubeconfig')}`, '--secure-port=0', '-o=json']
    const { code, out } = await runProgram((context) => upProgram.run(context, AbortSignal.abort()), {
      args: ['--runtime=simulated', ...where],
      clock: realClock,
      random: secureRandom,
      cwd: dir,
      readFile: (path) => readFile(path, 'utf8'),
    })
    assert.deepEqual([code, out], [0, ''])
    assert.equal(existsSync(join(place, 'cluster.json')), false)
  })
})

describe('hyperkube up --detach, status, down and reset', () => {
  const run = (...args: string[]): { code: number | null; out: string; err: string } => {
    const env = { ...process.env, HOME: dir }
    const { status: code, stdout: out, stderr: err } = spawnSync(HYPERKUBE, args, { encoding: 'utf8', env })
    return { code, out, err }
  }
  const [one, two] = ['one', 'two'].map((name) => `--data-dir=${join(dir, name)}`) as [string, string]
  after(() => {
    for (const each of [one, two]) run('down', each)
  })

  it('start several clusters that outlive the command, each with a separate context', () => {
    for (const [at, each] of [one, two].entries()) {
      const { code, out, err } = run(
        'up',
        '--detach',
        '-o',
        'json',
        '--secure-port=0',
        each,
        `--kubeconfig=${kubeconfig}`,
        `--nodes=${at}`,
        '--runtime=simulated',
      )
      assert.equal(code, 0, err)
      const { context, nodes } = JSON.parse(out) as Awaited<Up['ready']>
      assert.deepEqual([context, nodes], [`hyperkube-${['one', 'two'][at]}`, at])
    }
    const again = run('up', '--detach', '--secure-port=0', one)
    assert.equal(again.code, 1)
    assert.match(
      again.err,
      /^Error: A cluster is running in \S+one already \(process \d+\); "hyperkube down --data-dir=\S+one" stops it/,
    )
  })

  it('show components, nodes, versions, size and expiry of certificates', () => {
    const { code, out } = run('status', two)
    assert.equal(code, 0, out)
    const shown = out
      .replaceAll(dir, 'DIR')
      .replaceAll(/\d+(\.\d+)? [KM]iB/g, 'SIZE')
      .replaceAll(/\d{4}-\d\d-\d\d/g, 'DATE')
    assert.match(
      shown.replaceAll(/\b\d+s\b/g, 'TIME').replaceAll(/(?<=:|process )\d+/g, 'N'),
      new RegExp(
        [
          /^Cluster {7}running/,
          /Data {10}DIR\/two, SIZE/,
          /Versions {6}hyperkube v\S+, Kubernetes v1\.36\.4/,
          /API server {4}https:\/\/127\.0\.0\.1:N, ready/,
          /Controllers {3}\d+ in process N, for TIME/,
          /Scheduler {5}in the same process/,
          /Nodes {9}1 of 1 ready/,
          /Kubeconfig {4}DIR\/kube\/config, context "hyperkube-two"/,
          /Console {7}http:\/\/127\.0\.0\.1:N\/ui\/login\?code=[\w-]{43}\nCertificates {2}the first, \S+, expires on DATE and is renewed before\n$/,
        ]
          .map(({ source }) => source)
          .join('\n'),
      ),
    )
    const told = JSON.parse(run('status', '-o', 'json', one).out) as { state: string; ready: string; nodes: unknown[] }
    assert.deepEqual([told.state, told.ready, told.nodes], ['running', 'ok', []])
  })

  it('stop, restart and delete one cluster with its context, without affecting the other', () => {
    assert.deepEqual(run('down', one).out, `Stopped the cluster in ${join(dir, 'one')}\n`)
    assert.deepEqual(run('down', one).out, `No cluster is running in ${join(dir, 'one')}\n`)
    const stopped = run('status', one)
    assert.equal(stopped.code, 1)
    assert.match(stopped.out, /^Cluster {7}stopped\n/)
    writeFileSync(join(dir, 'one', 'notes.txt'), 'not ours')
    const { out, code } = run('reset', one, `--kubeconfig=${kubeconfig}`)
    assert.equal(code, 0)
    assert.match(out, /^Deleted the cluster in \S+one\nRemoved context "hyperkube-one" from \S+\n$/)
    assert.deepEqual(readdirSync(join(dir, 'one')), ['notes.txt'])
    const left = readFileSync(kubeconfig, 'utf8')
    assert.match(left, /name: hyperkube-two/)
    assert.match(left, /name: hyperkube\n/)
    assert.doesNotMatch(left, /hyperkube-one/)
    assert.equal(run('status', two).code, 0)
  })

  it('start from a snapshot, and delete a running cluster', { skip: whyNoKubectl }, async () => {
    await kubectl('--context=hyperkube-two', 'create', 'configmap', 'early', '--from-literal=a=1')
    const [revision, time] = (
      await kubectl(
        '--context=hyperkube-two',
        'get',
        'configmap',
        'early',
        '-o',
        'jsonpath={.metadata.resourceVersion} {.metadata.creationTimestamp}',
      )
    ).split(' ')
    // Times are to a second.
    await sleep(realClock, 1100)
    await kubectl('--context=hyperkube-two', 'create', 'secret', 'generic', 'late', '--from-literal=a=1')
    const saved = run('snapshot', 'save', 'all', two, '-o', 'json')
    assert.equal(saved.code, 0, saved.err)
    const { file } = JSON.parse(saved.out) as { file: string }
    for (const [from, expected] of [
      [file, 'configmap/early\nsecret/late'],
      [`${file}@${revision}`, 'configmap/early'],
      [`${file}@${time}`, 'configmap/early'],
    ] as const) {
      const data = `--data-dir=${join(dir, 'from')}`
      const started = run(
        'up',
        '--detach',
        '--secure-port=0',
        data,
        `--kubeconfig=${kubeconfig}`,
        `--from-snapshot=${from}`,
      )
      assert.equal(started.code, 0, started.err)
      const names = await kubectl(
        '--context=hyperkube-from',
        'get',
        'configmap/early',
        'secret/late',
        '--ignore-not-found',
        '-o',
        'name',
      )
      assert.equal(names, expected)
      const taken = run('up', '--secure-port=0', data, `--from-snapshot=${from}`)
      assert.match(taken.err, /^Error: There is already a cluster in \S+from/)
      assert.equal(run('reset', data).code, 0)
      assert.equal(existsSync(join(dir, 'from')), false)
    }
    assert.equal(run('reset', '--snapshots', two).code, 0)
    assert.deepEqual(leftovers(), [])
  })
})
