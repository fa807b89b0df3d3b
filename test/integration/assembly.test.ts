/** Tests that `kube-apiserver`, `up` and `hyperkube/testing` start the same server: their responses are equal. */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { after, before, describe, it } from 'node:test'

import { identityOf } from '#apiserver/bootstrap/identity-lease.ts'
import { up } from '#cmd/cluster/up.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { startControlPlane } from '#testing/control-plane.ts'

import { startWire } from './wire/server.ts'

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
}

type Get = (path: string) => Promise<Answer>

const closing = new AsyncDisposableStack()
const servers = new Map<string, Get>()

before(async () => {
  const wire = closing.use(await startWire())
  servers.set('kube-apiserver', clientOf(wire.url, { insecure: true }, 'admin-token'))
  servers.set('up', await startUp())
  const plane = closing.use(await startControlPlane())
  servers.set('hyperkube/testing', clientOf(plane.url, { ca: plane.ca }, plane.token))
})
after(() => closing.disposeAsync())

function clientOf(url: string, tls: Parameters<HttpClient['reloadTls']>[0], token = ''): Get {
  const client = createHttpClient({ clock: realClock, tls })
  closing.defer(() => client.close())
  return async (path) => {
    const headers = token === '' ? {} : { authorization: `Bearer ${token}` }
    const answer = await client.request({ url: url + path, headers })
    return { status: answer.status, headers: answer.headers, text: await answer.text(64 << 20) }
  }
}

/** In this process, with its state in a folder of its own. */
async function startUp(): Promise<Get> {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-assembly-'))
  closing.defer(() => rmSync(dir, { recursive: true, force: true }))
  const kubeconfig = join(dir, 'kubeconfig')
  const control = new AbortController()
  const ready = Promise.withResolvers<string>()
  let err = ''
  const stdout = sink((text) => ready.resolve((JSON.parse(text) as { apiServer: string }).apiServer))
  const args = [
    '-o',
    'json',
    '--runtime=simulated',
    '--secure-port=0',
    '--datastore=memory',
    // The server is compared; what controllers and scheduler make of it would be there or not by chance.
    '--controllers=',
    '--scheduler=false',
    '--nodes=0',
    `--data-dir=${dir}`,
    `--kubeconfig=${kubeconfig}`,
  ]
  const ended = up.run(
    {
      path: ['up'],
      args,
      env: {},
      cwd: dir,
      stdin: () => new PassThrough().end(),
      stdout,
      stderr: sink((text) => (err += text)),
      clock: realClock,
      random: secureRandom,
      readFile: (path) => Promise.resolve(readFileSync(path, 'utf8')),
    },
    control.signal,
  )
  ended.then((code) => ready.reject(new Error(`Ended with ${code}: ${err}`)), ready.reject)
  closing.defer(async () => {
    control.abort()
    await ended
  })
  const url = await ready.promise
  const { users, clusters } = parseYaml(readFileSync(kubeconfig, 'utf8')) as unknown as Kubeconfig
  const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString()
  return clientOf(url, {
    ca: decode(clusters[0]?.cluster['certificate-authority-data']),
    certificate: decode(users[0]?.user['client-certificate-data']),
    key: decode(users[0]?.user['client-key-data']),
  })
}

interface Kubeconfig {
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[]
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[]
}

function sink(take: (text: string) => void): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      take(chunk.toString())
      done()
    },
  })
}

/** The same words with what belongs to each server left out: addresses, keys, versions, times, certificates it has. */
function lines(text: string): string {
  return text
    .replaceAll(/^.*aggregator-reload-proxy-client-cert.*\n/gm, '')
    .replaceAll(/\b(?:\d{1,3}\.){3}\d{1,3}:\d+\b/g, 'ADDRESS')
}

async function same(path: string, shown: (answer: Answer) => unknown): Promise<void> {
  const told = new Map<string, unknown>()
  for (const [name, get] of servers) told.set(name, shown(await get(path)))
  const [first, ...others] = told
  assert.ok(first !== undefined)
  for (const [name, one] of others) assert.deepEqual(one, first[1], `${name} is another server than ${first[0]}`)
}

/** Pages that say since when the server runs, and how it was started. */
const OWN: ReadonlySet<string> = new Set(['/statusz', '/flagz'])

const statusAndText = ({ status, text }: Answer): unknown => [status, lines(text)]

describe('API server started in three ways', () => {
  for (const path of [
    '/',
    '/api',
    '/apis',
    '/api/v1',
    '/version',
    '/healthz?verbose',
    '/livez?verbose',
    '/readyz?verbose',
    '/openapi/v3',
    '/openapi/v2',
    '/metrics/slis',
    '/statusz',
    '/flagz',
    '/nothing',
  ]) {
    it(`gives the same response to ${path}`, () => same(path, OWN.has(path) ? ({ status }) => status : statusAndText))
  }

  it('has the same metric families', () =>
    same('/metrics', ({ status, text }) => {
      assert.equal(status, 200)
      return (text.match(/^# TYPE \S+ \S+$/gm) ?? []).sort()
    }))

  it('serves the public keys of its tokens', async () => {
    await same('/openid/v1/jwks', ({ status, headers, text }) => {
      const { keys } = JSON.parse(text) as { keys: readonly { use: string }[] }
      return [status, headers['content-type'], keys.map(({ use }) => use)]
    })
    await same('/.well-known/openid-configuration', ({ status, text }) => {
      const { issuer, jwks_uri: keys, ...rest } = JSON.parse(text) as Record<string, unknown>
      const { id_token_signing_alg_values_supported: _algorithms, ...documented } = rest
      assert.match(`${String(issuer)} ${String(keys)}`, /^https:\/\/\S+ https:\/\/\S+:\d+\/openid\/v1\/jwks$/)
      return [status, documented]
    })
  })

  it('maintains its identity Lease', () =>
    same(`/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/${identityOf(hostname())}`, ({ status, text }) => {
      const { metadata, spec } = JSON.parse(text) as { metadata: { labels: object }; spec: Record<string, unknown> }
      return [status, metadata.labels, spec['leaseDurationSeconds']]
    }))

  it('limits requests in flight, and names the FlowSchema of each', async () => {
    await same('/api/v1/namespaces', ({ status, headers }) => {
      const names = Object.keys(headers).filter((name) => name.startsWith('x-kubernetes-pf-'))
      return [status, names.sort(), typeof headers['audit-id']]
    })
    await same('/metrics', ({ text }) => text.match(/^apiserver_current_inflight_requests\{\S+/gm))
  })

  it('creates the same initial objects', async () => {
    const names = ({ text }: Answer): unknown => {
      const { items } = JSON.parse(text) as { items: readonly { metadata: { name: string } }[] }
      return items.map(({ metadata }) => metadata.name).filter((name) => !name.startsWith('hyperkube:'))
    }
    for (const path of [
      '/api/v1/namespaces',
      '/api/v1/namespaces/default/services',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles',
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
      '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas',
      '/apis/apiregistration.k8s.io/v1/apiservices',
      '/apis/networking.k8s.io/v1/servicecidrs',
    ]) {
      await same(path, names)
    }
  })

  it('rejects invalid parameters with the same errors', () => same('/api/v1/pods?limit=x', statusAndText))
})
