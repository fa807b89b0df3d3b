/** Tests the commands of kubectl that read the past of a cluster or compare two moments, and `hyperkube at`. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'

import { ConfigMaps, Namespaces } from '#apis/core/v1.ts'
import { at } from '#cmd/at.ts'
import { runKubectl } from '#kubectl/kubectl.ts'
import { startCluster, type TestCluster } from '#testing/cluster.ts'

import { UPSTREAM_VERSION } from '../../upstream/programs.ts'
import { contextOf, folder, kubectlFor, namespace, type Outcome, Text, twoMinutes } from './past-bed.ts'

const UPSTREAM = [
  join(homedir(), '.cache', 'hyperkube', 'upstream', UPSTREAM_VERSION, 'kubectl'),
  '/usr/bin/kubectl',
].find((file) => existsSync(file))

async function codeAndText(run: Promise<Outcome>): Promise<[number, string]> {
  const { code, out, err } = await run
  return [code, out + err]
}

describe('kubectl --at', () => {
  it('shows objects, ages, details and kinds of that time', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const names = 'configmap/early\nconfigmap/gone\nconfigmap/kube-root-ca.crt\n'
    assert.equal((await kubectl('get cm -o name --at -100s')).out, names)
    assert.match((await kubectl('get cm early --at -100s')).out, /^early +1 +(19|20|21)s$/m)
    assert.match((await kubectl('describe cm early --at -100s')).out, /value:\n----\nold/)
    assert.match((await kubectl('describe cm early')).out, /value:\n----\nnew/)
    assert.match((await kubectl('explain configmap.data --at -100s')).out, /FIELD: data/)
    assert.match((await kubectl('api-resources --at -100s')).out, /^configmaps +cm +v1 +true +ConfigMap$/m)
    assert.equal(
      (await kubectl('get cm/late --at -100s')).err,
      'Error from server (NotFound): configmaps "late" not found\n',
    )
    const { metadata } = await cluster.client.get(ConfigMaps, { namespace, name: 'late' })
    const previous = Number(metadata.resourceVersion) - 1
    assert.equal((await kubectl(`get cm/early --at rv:${previous} -o jsonpath={.data.value}`)).out, 'new')
  })

  it('shows events with the age of that time', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const kubectl = await kubectlFor(cluster)
    await kubectl('create deployment web --image=nginx')
    await cluster.settle()
    await cluster.clock.advance('2m')
    const { out } = await kubectl('events --at -110s')
    assert.match(out, /^LAST SEEN +TYPE +REASON/)
    assert.match(out, /^\d{1,2}s +Normal +ScalingReplicaSet/m)
  })

  it('is refused where there is no past', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const rows = [
      ['top pod --at -100s', 'error: metrics have no past: top cannot show an earlier moment\n'],
      ['top node --at -100s', 'error: metrics have no past: top cannot show an earlier moment\n'],
      ['get cm --at -100s --speed 60', 'error: --speed only works with --watch\n'],
      ['get cm -w --speed 60', 'error: --speed only works with --at\n'],
    ] as const
    for (const [line, text] of rows) assert.deepEqual(await codeAndText(kubectl(line)), [1, text], line)
    for (const line of [
      'delete cm early --at -100s',
      'apply -f x --at -100s',
      'logs x --at -100s',
      'edit cm early --at -1s',
    ]) {
      assert.match((await kubectl(line)).err, /^error: unknown flag: --at/, line)
    }
    assert.match((await kubectl('get cm --at -3h')).err, /does not reach back/)
  })

  it('says that a server keeps no past', async () => {
    const server = createServer((_request, response) => response.writeHead(404).end('404 page not found\n'))
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    try {
      await using cluster = await startCluster({ clock: 'virtual', nodes: 0, controllers: [] })
      const kubectl = await kubectlFor(cluster)
      const { port } = server.address() as AddressInfo
      const text = 'error: the server keeps no past: only hyperkube serves it\n'
      for (const command of ['get pods', 'events', 'api-resources', 'explain pods']) {
        const line = `${command} --at -1s --server http://127.0.0.1:${port}`
        assert.deepEqual(await codeAndText(kubectl(line)), [1, text], command)
      }
    } finally {
      server.close()
    }
  })

  it('plays changes faster with --watch --speed', async () => {
    await using cluster = await startCluster({ clock: 'real', nodes: 0 })
    const { client } = cluster
    const { metadata } = await client.create(ConfigMaps, { metadata: { namespace, name: 'first' } })
    await client.create(ConfigMaps, { metadata: { namespace, name: 'second' } })
    await client.delete(ConfigMaps, { namespace, name: 'first' })
    const [stdout, stderr, stop] = [new Text(), new Text(), new AbortController()]
    const line = `get cm -w --output-watch-events --at rv:${metadata.resourceVersion} --speed 1000`
    const context = { ...(await contextOf(cluster)), path: ['kubectl'], args: line.split(' '), stdout, stderr }
    const running = runKubectl(context, stop.signal)
    await stdout.until(/^ADDED +second/m)
    await stdout.until(/^DELETED +first/m)
    assert.match(stdout.text, /^ADDED +first/m)
    stop.abort(new Error('enough'))
    await running
  })
})

describe('hyperkube at', () => {
  async function hyperkubeAt(cluster: TestCluster, ...args: string[]): Promise<Outcome> {
    const [stdout, stderr] = [new Text(), new Text()]
    const context = { ...(await contextOf(cluster)), path: ['hyperkube', 'at'], args, stdout, stderr }
    const code = await at.run(context, new AbortController().signal)
    return { code, out: stdout.text, err: stderr.text }
  }

  it('runs a command with a kubeconfig of the moment and removes the file', async () => {
    await using cluster = await twoMinutes()
    const script = 'echo $KUBECONFIG; grep server: $KUBECONFIG; exit 3'
    const { code, out, err } = await hyperkubeAt(cluster, '-100s', '--', 'sh', '-c', script)
    assert.deepEqual([code, err], [3, ''])
    const [file = '', server = ''] = out.split('\n')
    assert.equal(server.trim(), `server: ${cluster.url}/past/2026-01-01T00:00:20Z`)
    assert.equal(existsSync(file), false)
  })

  it('runs a client with --at of another moment', async () => {
    await using cluster = await twoMinutes()
    const { out } = await hyperkubeAt(cluster, '-10s', '--print')
    const file = join(folder, 'nested')
    await writeFile(file, out)
    const kubectl = await kubectlFor(cluster)
    const line = `get cm/early -o jsonpath={.data.value} --kubeconfig ${file}`
    assert.deepEqual([(await kubectl(line)).out, (await kubectl(`${line} --at -100s`)).out], ['new', 'old'])
  })

  it('says why it cannot show a moment', async () => {
    await using cluster = await twoMinutes()
    const early = await hyperkubeAt(cluster, '-3h', '--', 'true')
    assert.equal(early.code, 1)
    assert.match(early.err, /does not reach back/)
    const unknown = await hyperkubeAt(cluster, '-100s', '--', 'no-such-program')
    assert.match(unknown.err, /^Error: Cannot run "no-such-program"/)
  })

  it(
    "shows four states of a rollout to upstream's kubectl",
    { skip: UPSTREAM === undefined && 'there is no kubectl' },
    async () => {
      await using cluster = await startCluster({ clock: 'virtual' })
      const kubectl = await kubectlFor(cluster)
      const moments: string[] = []
      const done = async (line: string): Promise<void> => {
        const { code, err } = await kubectl(line)
        assert.equal(code, 0, err)
        await cluster.clock.advance('20s')
        moments.push(cluster.clock.now().toISOString())
        await cluster.clock.advance('5s')
      }
      await done('create deployment web --image=nginx:1')
      await done('set image deployment/web nginx=nginx:2')
      await done('set image deployment/web nginx=nginx:broken')
      await done('undo deployment/web --yes')
      const [images, ages]: [string[], number[]] = [[], []]
      for (const moment of moments) {
        const { code, out } = await hyperkubeAt(cluster, moment, '--print')
        assert.equal(code, 0)
        const file = join(folder, 'printed')
        await writeFile(file, out)
        const args = ['--kubeconfig', file, 'get', 'deployment', 'web', '-o', 'wide', '--no-headers']
        const { stdout } = await promisify(execFile)(UPSTREAM ?? '', args, { env: { HOME: folder } })
        const [, , , , age, , image] = stdout.trim().split(/ +/)
        images.push(image ?? '')
        ages.push(Number(age?.replace(/s$/, '')))
      }
      assert.deepEqual(images, ['nginx:1', 'nginx:2', 'nginx:broken', 'nginx:2'])
      // The time of a state is that of its last change: nodes renew their Leases every ten seconds.
      for (const [index, expected] of [20, 45, 70, 95].entries()) {
        const age = ages[index] ?? 0
        assert.ok(age <= expected && age >= expected - 10, `${age}s instead of ${expected}s`)
      }
    },
  )
})

describe('kubectl diff --from', () => {
  it('shows what was created, changed and deleted, and exits with 1', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    const { code, out } = await kubectl('diff --from -100s')
    assert.equal(code, 1)
    assert.match(out, /^-\s+value: old\n\+\s+value: new$/m)
    assert.match(out, /^-\s+value: lost$/m)
    assert.match(out, /^\+\s+name: late$/m)
    assert.doesNotMatch(out, /managedFields|resourceVersion/)
    const one = await kubectl('diff --from -100s cm/early')
    assert.doesNotMatch(one.out, /late|lost/)
    assert.equal(
      (await kubectl('diff --from -100s cm early -n default')).out.split('\n').length,
      one.out.split('\n').length,
    )
  })

  it('exits with 0 without a difference, and with more than 1 after an error', async () => {
    await using cluster = await twoMinutes()
    const kubectl = await kubectlFor(cluster)
    assert.deepEqual(await kubectl('diff --from -50s --to -20s'), { code: 0, out: '', err: '' })
    assert.deepEqual(await kubectl('diff --from -100s secrets'), { code: 0, out: '', err: '' })
    for (const line of [
      'diff --from yesterday',
      'diff --from -100s -f x',
      'diff --to -1s',
      'diff --from -100s cm/none',
    ]) {
      assert.equal((await kubectl(line)).code, 2, line)
    }
  })

  it('compares all namespaces, and status on request', async () => {
    await using cluster = await startCluster({ clock: 'virtual' })
    const kubectl = await kubectlFor(cluster)
    await cluster.client.create(Namespaces, { metadata: { name: 'other' } })
    await kubectl('create deployment web --image=nginx -n other')
    await cluster.clock.advance('20s')
    await kubectl('scale deployment/web -n other --replicas=2')
    await cluster.clock.advance('20s')
    assert.equal((await kubectl('diff --from -25s deployments')).code, 0)
    const everywhere = await kubectl('diff --from -25s deployments -A')
    assert.match(everywhere.out, /^-\s+replicas: 1\n\+\s+replicas: 2$/m)
    assert.doesNotMatch(everywhere.out, /readyReplicas/)
    assert.match((await kubectl('diff --from -25s deploy/web -n other --status')).out, /readyReplicas: 2/)
  })
})
