/**
 * Tests the agent of a worker with a server over TLS on this machine. The worker's programs only sleep, and the clock
 * runs ten times as fast.
 */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { type Clock, realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { createSeededRandom } from '#lib/random.ts'
import { connectTo } from '#lib/tunnel/connect-to.ts'
import { Agent } from '#supervisor/agent/agent.ts'
import { type AgentSettings, nodeParameters } from '#supervisor/agent/parameters.ts'
import { createServerLink, fetchServerCa } from '#supervisor/agent/server-link.ts'
import { linuxHost } from '#supervisor/linux/host.ts'
import { Supervisor } from '#supervisor/supervisor.ts'

import { HYPERKUBE } from '../../upstream/ours.ts'
import { AgentServer } from './agent-server.ts'
import { endAllIn, livingIn, NAMES, SETTINGS, wholeIn, writeStandIns } from './stand-ins.ts'

const FASTER = 10

const fastClock: Clock = {
  now: () => realClock.now(),
  elapsed: () => realClock.elapsed() * FASTER,
  after: (delayMs, task, options) => realClock.after(delayMs / FASTER, task, options),
  during: (work) => realClock.during(work),
}

const settingsFor = (server: AgentServer): AgentSettings => ({
  server: server.url,
  token: server.token,
  caChecksum: server.caChecksum,
  nodeName: 'N1',
  roles: ['worker'],
  address: '203.0.113.7',
  internalAddress: '127.0.0.1',
  labels: { zone: 'a' },
  taints: [],
})

const planOf = (ca: string, node: object = SETTINGS): readonly [number, string] => {
  const contents = Buffer.from('kind: Config').toString('base64')
  const files = [{ name: '/etc/kubernetes/ssl/kubecfg-kube-node.yaml', contents }]
  return [200, JSON.stringify({ certs: { 'kube-ca.pem': ca }, files, node })]
}

test('an agent applies the plan of the server', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'hyperkube-node-agent-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(root, { recursive: true, force: true }))
  closing.defer(() => endAllIn(root))
  await writeStandIns(root)
  const server = new AgentServer()
  closing.use(server)
  await server.start()
  const settings = settingsFor(server)
  const ca = await fetchServerCa(realClock, settings)
  const http = createHttpClient({ clock: realClock })
  closing.defer(() => http.close())
  let supervisor: Supervisor | undefined
  const said: string[] = []
  const host = linuxHost({
    clock: fastClock,
    http,
    root,
    say: (line) => said.push(line),
    ended: () => supervisor?.wake(),
  })
  const link = createServerLink({
    clock: realClock,
    settings,
    ca,
    parameters: () => nodeParameters(host, settings),
    accept: connectTo((_, address) => address.startsWith('127.0.0.1:')),
  })
  closing.defer(() => link.close())
  const agent = new Agent({
    host,
    server: link,
    createSupervisor(node) {
      supervisor = new Supervisor({
        host,
        random: createSeededRandom(1),
        settings: node,
        health: {},
        report: () => undefined,
      })
      return supervisor
    },
  })
  const stop = new AbortController()
  const ended = agent.run(stop.signal)
  closing.defer(async () => {
    stop.abort()
    await ended
  })

  await t.test('which it is introduced to, and whose plan it waits for', async () => {
    await eventually(
      () => server.asked.filter((path) => path === '/config').length,
      (count) => count > 2,
    )
    assert.equal(server.asked[0], '/register')
    assert.deepEqual(server.parameters, {
      node: {
        customConfig: {
          address: '203.0.113.7',
          internalAddress: '127.0.0.1',
          roles: ['worker'],
          label: { zone: 'a' },
          taints: [],
        },
        etcd: false,
        controlPlane: false,
        worker: true,
        requestedHostname: 'n1',
      },
    })
    assert.deepEqual(await livingIn(root), { kubelet: [], flanneld: [], 'kube-proxy': [] })
  })

  await t.test('and then follows', async () => {
    server.plan = planOf('CA 1')
    await wholeIn(root)
    const file = join(root, 'etc/kubernetes/ssl/kubecfg-kube-node.yaml')
    assert.equal(await readFile(file, 'utf8'), 'kind: Config')
  })

  await t.test('through the tunnel the server reaches this machine, and no other', async () => {
    await using echo = Object.assign(
      createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)),
      {
        [Symbol.asyncDispose]: async () => void echo.close(),
      },
    )
    await once(echo.listen(0, '127.0.0.1'), 'listening')
    const { port } = echo.address() as { readonly port: number }
    const big = 'x'.repeat(3 << 20)
    const streams = [server.dial(`127.0.0.1:${port}`), server.dial(`127.0.0.1:${port}`)]
    const [first, second] = await Promise.all(
      streams.map((stream, at) => {
        stream.end(at === 0 ? big : 'small')
        return text(stream)
      }),
    )
    assert.equal(first?.length, big.length)
    assert.equal(second, 'small')
    await assert.rejects(text(server.dial('192.0.2.1:80')), {
      message: 'connecting to tcp/192.0.2.1:80 is not allowed',
    })
  })

  await t.test('a broken connection comes back, and the node does not notice', async () => {
    const before = await livingIn(root)
    server.cut()
    await eventually(
      () => server.asked.at(-2),
      (path) => path === '/',
    )
    assert.deepEqual(await livingIn(root), before)
  })

  await t.test('other certificates restart who reads them', async () => {
    const before = await wholeIn(root)
    server.plan = planOf('CA 2')
    server.cut()
    await eventually(
      () => livingIn(root),
      (now) => NAMES.every((name) => now[name]?.length === 1 && now[name][0] !== before[name]?.[0]),
    )
  })

  await t.test(
    'network policies hold where the plan says so, and leave nothing where it does not any more',
    async () => {
      const before = await wholeIn(root)
      server.plan = planOf('CA 2', { ...SETTINGS, networkPolicyOptions: ['--kubeconfig=x'] })
      server.cut()
      const now = await eventually(
        () => livingIn(root),
        (living) => living['kube-network-policies']?.length === 1,
      )
      assert.deepEqual(
        { ...now, 'kube-network-policies': undefined },
        { ...before, 'kube-network-policies': undefined },
      )
      server.plan = planOf('CA 2')
      server.cut()
      await eventually(
        () => livingIn(root),
        (living) => living['kube-network-policies'] === undefined,
      )
      await eventually(
        () => readFile(join(root, 'cleaned-up'), 'utf8').catch(() => ''),
        (text) => text === 'yes\n',
      )
    },
  )

  await t.test('a server that does not know it any more has it cleaned', async () => {
    const details = { name: 'N1', kind: 'nodes' }
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', details, code: 404 }
    server.plan = [404, JSON.stringify(status)]
    server.cut()
    assert.equal(await ended, 'removed')
    assert.deepEqual(await livingIn(root), { kubelet: [], flanneld: [], 'kube-proxy': [] })
    assert.deepEqual(await readdir(join(root, 'etc/kubernetes')), [])
    assert.deepEqual(await readdir(join(root, 'var/lib/hyperkube/node')), [])
  })
})

test('node agent refuses a server with another certificate authority', async () => {
  await using server = new AgentServer()
  await server.start()
  const args = [`--server=${server.url}`, `--ca-checksum=${'0'.repeat(64)}`, '--root=/nonexistent']
  const env = { ...process.env, CATTLE_TOKEN: server.token }
  const running = spawn(HYPERKUBE, ['node', 'agent', ...args], { stdio: ['ignore', 'ignore', 'pipe'], env })
  const [said, [code]] = await Promise.all([text(running.stderr), once(running, 'close')])
  assert.equal(code, 1)
  assert.match(
    said,
    /Error: The authority that https:\/\/127\.0\.0\.1:\d+\/v3\/settings\/cacerts provides has another checksum/,
  )
})
