/**
 * kube-controller-manager as a program: processes of their own with a kubeconfig, against a server over HTTPS. One leads, the
 * other waits; the first is killed, the second takes over.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { type ControlPlane, startControlPlane } from '#testing/control-plane.ts'

const LEASE = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager'
const BIN = new URL('../../bin/hyperkube', import.meta.url).pathname
const DEADLINE_MS = 60_000

interface Running {
  readonly child: ChildProcess
  readonly port: number
  readonly log: () => string
}

async function until<T>(what: string, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let waitedMs = 0; waitedMs < DEADLINE_MS; waitedMs += 50) {
    const found = await ask()
    if (found !== undefined) return found
    await sleep(realClock, 50)
  }
  throw new Error(`Waited in vain for ${what}`)
}

/** Port 0 would mean none at all, as upstream. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

describe('kube-controller-manager', () => {
  let plane: ControlPlane
  let folder = ''
  const started: Running[] = []
  const client = createHttpClient({ clock: realClock, tls: { insecure: true } })

  async function start(...args: string[]): Promise<Running> {
    const quick = [
      '--leader-elect-lease-duration=3s',
      '--leader-elect-renew-deadline=2s',
      '--leader-elect-retry-period=500ms',
    ]
    const file = join(folder, 'kubeconfig')
    const delegated = [`--authentication-kubeconfig=${file}`, `--authorization-kubeconfig=${file}`]
    const own = [
      `--kubeconfig=${file}`,
      '--use-service-account-credentials',
      '--bind-address=127.0.0.1',
      `--secure-port=${await freePort()}`,
      ...quick,
      ...delegated,
      ...args,
    ]
    const child = spawn(BIN, ['kube-controller-manager', ...own], { stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
    const port = await until('its port', () => {
      if (child.exitCode !== null) throw new Error(`It ended:\n${log}`)
      const found = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(log)?.[1]
      return found === undefined ? undefined : Number(found)
    })
    const running = { child, port, log: () => log }
    started.push(running)
    return running
  }

  async function get(path: string): Promise<unknown> {
    return (await plane.request('GET', path)).json()
  }

  async function page(port: number, path: string, token?: string): Promise<{ status: number; text: string }> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await client.request({ url: `https://127.0.0.1:${port}${path}`, headers })
    return { status: answer.status, text: await answer.text(1 << 22) }
  }

  const holder = async (): Promise<string | undefined> => {
    const { spec } = (await get(LEASE)) as { spec?: { holderIdentity?: string } }
    return spec?.holderIdentity
  }

  const replicaSet = (name: string): object => ({
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  })

  async function madePods(name: string): Promise<{ metadata: { managedFields: { manager: string }[] } }[]> {
    const created = await plane.request('POST', '/apis/apps/v1/namespaces/default/replicasets', replicaSet(name))
    assert.equal(created.status, 201, created.text)
    return until(`the pods of ${name}`, async () => {
      const path = `/api/v1/namespaces/default/pods?labelSelector=app%3D${name}`
      const { items } = (await get(path)) as { items: never[] }
      return items.length === 2 ? items : undefined
    })
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'manager-'))
    // With the rights that managers have, and no others.
    const tokens = 'admin,admin,admin,"system:masters"\nmanager,system:kube-controller-manager,manager\n'
    plane = await startControlPlane({ files: new Map([['tokens.csv', tokens]]) })
    const { url: server, ca } = plane
    const cluster = { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') }
    const config = {
      clusters: [{ name: 'a', cluster }],
      users: [{ name: 'a', user: { token: 'manager' } }],
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      'current-context': 'a',
    }
    await writeFile(join(folder, 'kubeconfig'), JSON.stringify(config), { mode: 0o600 })
  })

  after(async () => {
    for (const { child } of started) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    client.close()
    await plane.stop()
    await rm(folder, { recursive: true })
  })

  it('leads and works, says so in the Lease, an event and metrics, and lets the next one when it is killed', async () => {
    const first = await start()
    const leader = await until('a leader', holder)
    assert.match(leader, /^.+_[0-9a-f-]{36}$/)
    const second = await start()
    const [pod] = await madePods('one')
    assert.equal(pod?.metadata.managedFields[0]?.manager, 'kube-controller-manager')
    assert.match(
      (await page(first.port, '/metrics', plane.token)).text,
      /leader_election_master_status\{name="kube-controller-manager"\} 1/,
    )
    assert.match(
      (await page(second.port, '/metrics', plane.token)).text,
      /leader_election_master_status\{name="kube-controller-manager"\} 0/,
    )
    const event = await until('the event', async () => {
      const { items } = (await get('/api/v1/namespaces/kube-system/events')) as {
        items: { message: string; reason: string; source: { component: string }; involvedObject: { kind: string } }[]
      }
      return items.find(({ reason }) => reason === 'LeaderElection')
    })
    assert.deepEqual(
      [event.message, event.source.component, event.involvedObject.kind],
      [`${leader} became leader`, 'kube-controller-manager', 'Lease'],
    )
    first.child.kill('SIGKILL')
    await until('another leader', async () => ((await holder()) === leader ? undefined : true))
    await madePods('two')
    const { items } = (await get('/api/v1/namespaces/kube-system/serviceaccounts')) as {
      items: { metadata: { name: string } }[]
    }
    assert.ok(items.some(({ metadata }) => metadata.name === 'replicaset-controller'))
    second.child.kill('SIGTERM')
    const [code] = (await once(second.child, 'exit')) as [number]
    assert.equal(code, 0, second.log())
    assert.doesNotMatch(second.log(), /forbidden/)
  })

  it('shows health to everybody, and the rest to those whom the API server lets', async () => {
    const { port } = await start('--leader-elect=false', '--controllers=namespace,-replicaset')
    await until(
      'its controllers',
      async () => /namespace-controller ok/.test((await page(port, '/healthz?verbose')).text) || undefined,
    )
    assert.deepEqual(await page(port, '/healthz'), { status: 200, text: 'ok' })
    assert.match(
      (await page(port, '/healthz?verbose')).text,
      /^\[\+\]leaderElection ok\n\[\+\]namespace-controller ok\nhealthz check passed\n$/,
    )
    assert.equal((await page(port, '/metrics')).status, 403)
    assert.equal((await page(port, '/metrics', 'nobody')).status, 401)
    const { status, text } = await page(port, '/metrics', plane.token)
    assert.equal(status, 200)
    for (const family of [
      'workqueue_adds_total{name="namespace-controller"}',
      'rest_client_requests_total{code="200"',
      'process_cpu_seconds_total',
    ]) {
      assert.ok(text.includes(family), family)
    }
    assert.match((await page(port, '/flagz', plane.token)).text, /kube-controller-manager flagz\n/)
    assert.match((await page(port, '/statusz', plane.token)).text, /kube-controller-manager statusz\n/)
    for (const path of ['/', '/nothing']) assert.equal((await page(port, path, plane.token)).status, 404)
    const shown = JSON.parse((await page(port, '/configz', plane.token)).text) as {
      'kubecontrollermanager.config.k8s.io': { Generic: { LeaderElection: object } }
    }
    assert.deepEqual(shown['kubecontrollermanager.config.k8s.io'].Generic.LeaderElection, {
      leaderElect: false,
      leaseDuration: '3s',
      renewDeadline: '2s',
      retryPeriod: '500ms',
      resourceLock: 'leases',
      resourceName: 'kube-controller-manager',
      resourceNamespace: 'kube-system',
    })
  })

  it('ends with what is wrong with the settings of a controller', async () => {
    const args = [
      'kube-controller-manager',
      `--kubeconfig=${join(folder, 'kubeconfig')}`,
      '--leader-elect=false',
      '--secure-port=0',
      '--allocate-node-cidrs',
      '--cluster-cidr=10.0.0.0/25',
    ]
    const child = spawn(BIN, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
    const [code] = (await once(child, 'close')) as [number]
    assert.equal(code, 1)
    assert.match(log, /"Error building controllers" err="Controller: Invalid --cluster-cidr, mask size of cluster CIDR/)
  })
})
