/** Tests `hyperkube assets` with controller-runtime's envtest: its flags, health checks and shutdown. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { Namespaces, Pods } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { until } from '#client/until.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

const HYPERKUBE = join(import.meta.dirname, '..', '..', 'bin', 'hyperkube')
const dir = mkdtempSync(join(tmpdir(), 'hyperkube-assets-'))
const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(dir, { recursive: true, force: true })
})

async function freePort(): Promise<number> {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  holder.close()
  await once(holder, 'close')
  return port
}

function start(file: string, args: readonly string[]): ChildProcess {
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

async function stop(child: ChildProcess): Promise<number | null> {
  const ended = once(child, 'exit') as Promise<[number | null]>
  child.kill('SIGTERM')
  return (await ended)[0]
}

/** As envtest makes them, and the flags it gives (its defaults of v0.24). */
async function startPlane(assets: string): Promise<{ client: ApiClient; end: () => Promise<(number | null)[]> }> {
  const [etcdPort, port] = [await freePort(), await freePort()]
  const etcdUrl = `http://127.0.0.1:${etcdPort}`
  const etcd = start(join(assets, 'etcd'), [
    `--advertise-client-urls=${etcdUrl}`,
    `--data-dir=${join(dir, 'etcd')}`,
    `--listen-client-urls=${etcdUrl}`,
    '--listen-peer-urls=http://localhost:0',
    '--unsafe-no-fsync=true',
  ])
  const authority = createAuthority({ commonName: 'envtest' }, { clock: realClock, random: secureRandom })
  const admin = authority.issue({ commonName: 'admin', organizations: ['system:masters'], purpose: 'client' })
  const files = { 'client-cert-auth-ca.crt': authority.certificatePem, 'sa-signer.key': keyToPem(createKey()) }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(dir, name), text)
  const server = start(join(assets, 'kube-apiserver'), [
    '--advertise-address=127.0.0.1',
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    '--bind-address=127.0.0.1',
    `--cert-dir=${dir}`,
    `--client-ca-file=${join(dir, 'client-cert-auth-ca.crt')}`,
    '--disable-admission-plugins=ServiceAccount',
    `--etcd-servers=${etcdUrl}`,
    `--secure-port=${port}`,
    '--service-account-issuer=https://127.0.0.1/',
    `--service-account-key-file=${join(dir, 'sa-signer.key')}`,
    `--service-account-signing-key-file=${join(dir, 'sa-signer.key')}`,
    '--service-cluster-ip-range=10.0.0.0/24',
  ])
  const tls = { insecure: true, certificate: admin.certificatePem, key: admin.keyPem }
  const http = createHttpClient({ clock: realClock, tls })
  for (const url of [`${etcdUrl}/health`, `https://127.0.0.1:${port}/healthz`]) {
    for (;;) {
      const answer = await http.request({ url }).catch(() => undefined)
      await answer?.text(1 << 20)
      if (answer?.status === 200) break
      assert.deepEqual([etcd.exitCode, server.exitCode], [null, null])
      await sleep(realClock, 20)
    }
  }
  const client = new ApiClient({
    transport: http,
    server: `https://127.0.0.1:${port}`,
    clock: realClock,
    userAgent: 'tester',
  })
  return {
    client,
    async end() {
      http.close()
      return [await stop(server), await stop(etcd)]
    },
  }
}

function assetsOf(...flags: string[]): string {
  const env = { ...process.env, XDG_CACHE_HOME: dir }
  const { stdout, status } = spawnSync(HYPERKUBE, ['assets', ...flags], { encoding: 'utf8', env })
  assert.equal(status, 0)
  return stdout.trim()
}

describe('hyperkube assets', () => {
  it('runs the control plane of envtest without controllers', async () => {
    const assets = assetsOf()
    assert.equal(assets, join(dir, 'hyperkube', 'assets'))
    const hasKubectl = spawnSync('which', ['kubectl']).status === 0
    assert.equal(existsSync(join(assets, 'kubectl')), hasKubectl)
    const { client, end } = await startPlane(assets)
    await client.create(Namespaces, { metadata: { name: 'stays' } })
    await client.delete(Namespaces, { name: 'stays' })
    const { status } = await client.get(Namespaces, { name: 'stays' })
    assert.equal(status?.phase, 'Terminating')
    assert.deepEqual(await end(), [0, 0])
  })

  it('runs controllers on request, so that pods run and namespaces are deleted', async () => {
    const { client, end } = await startPlane(assetsOf('--with-controllers'))
    const [namespace, labels] = ['ours', { app: 'web' }]
    await client.create(Namespaces, { metadata: { name: namespace } })
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'web:1', resources: {} }] } }
    const spec = { replicas: 1, selector: { matchLabels: labels }, template, strategy: {} }
    await client.create(Deployments, { metadata: { namespace, name: 'web' }, spec })
    const where = { client, kind: Deployments, namespace, name: 'web', timeoutMs: 60_000 }
    await until(where, (found) => found?.status?.availableReplicas === 1)
    const [pod] = (await client.list(Pods, { namespace })).items
    assert.equal(pod?.status?.phase, 'Running')
    await client.delete(Namespaces, { name: namespace })
    await until({ client, kind: Namespaces, name: namespace, timeoutMs: 60_000 }, (found) => found === undefined)
    assert.deepEqual(await end(), [0, 0])
  })
})
