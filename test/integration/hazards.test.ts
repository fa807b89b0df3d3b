/**
 * A test for each hazard of JavaScript and Node that concerns the API server, such as prototype keys and numbers beyond
 * 2^53.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'

import { createSeededRandom } from '#lib/random.ts'

import { type Got, type Json, PATCHES, PROTOBUF, startWire, type Wire } from './wire/server.ts'

let wire: Wire
let ns: string
let maps: string
before(async () => {
  wire = await startWire()
  ns = await wire.namespace()
  maps = `/api/v1/namespaces/${ns}/configmaps`
})
after(() => wire.stop())

const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Got> =>
  wire.request('POST', path, { body, headers })

function dial(): TLSSocket {
  const { hostname, port } = new URL(wire.url)
  const socket = connectTls({ host: hostname, port: Number(port), rejectUnauthorized: false })
  socket.on('error', () => undefined)
  return socket
}

/** Sends these bytes on a connection of their own; what came back when it was closed, or after a while. */
async function converse(bytes: string): Promise<string> {
  const socket = dial()
  const { promise, resolve } = Promise.withResolvers<string>()
  socket.once('data', (chunk: Buffer) => resolve(chunk.toString('latin1')))
  socket.once('close', () => resolve(''))
  socket.setTimeout(2000, () => resolve(''))
  socket.write(bytes)
  const said = await promise
  socket.destroy()
  return said
}

describe('objects with hostile content', () => {
  const KEYS = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty']
  const hostile = (value: string): string => KEYS.map((key) => `"${key}":"${value}"`).join(',')
  /** As text: an object literal would lose the first. */
  const dataOf = ({ text }: Got): string[] =>
    Object.entries((JSON.parse(text) as { data: Record<string, string> }).data)
      .map(([key, value]) => `${key}=${value}`)
      .toSorted()
  const expected = (value: string): string[] => KEYS.map((key) => `${key}=${value}`).toSorted()

  it('may have keys such as __proto__, which are data in every format', async () => {
    const made = await post(maps, `{"metadata":{"name":"proto"},"data":{${hostile('1')}}}`)
    assert.equal(made.status, 201, made.text)
    assert.deepEqual(dataOf(made), expected('1'))
    const patch = (type: keyof typeof PATCHES, body: string, query = ''): Promise<Got> =>
      wire.request('PATCH', `${maps}/proto${query}`, { body, headers: PATCHES[type] })
    assert.deepEqual(dataOf(await patch('merge', `{"data":{${hostile('2')}}}`)), expected('2'))
    assert.deepEqual(dataOf(await patch('strategic', `{"data":{${hostile('3')}}}`)), expected('3'))
    const operations = KEYS.map((key) => `{"op":"replace","path":"/data/${key}","value":"4"}`)
    assert.deepEqual(dataOf(await patch('json', `[${operations.join(',')}]`)), expected('4'))
    const config = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"proto"},"data":{${hostile('5')}}}`
    const applied = await patch('apply', config, '?fieldManager=m&force=true')
    assert.deepEqual(dataOf(applied), expected('5'))
    assert.deepEqual(dataOf(await wire.request('GET', `${maps}/proto`)), expected('5'))
    const yaml = KEYS.map((key) => `  "${key}": "6"`).join('\n')
    const fromYaml = await wire.request('PUT', `${maps}/proto`, {
      body: `metadata: {name: proto}\ndata:\n${yaml}\n`,
      headers: { 'content-type': 'application/yaml' },
    })
    assert.deepEqual(dataOf(fromYaml), expected('6'))
    const bytes = (await wire.request('GET', `${maps}/proto`, { headers: { accept: PROTOBUF } })).bytes
    const back = await wire.request('PUT', `${maps}/proto`, { body: bytes, headers: { 'content-type': PROTOBUF } })
    assert.deepEqual(dataOf(back), expected('6'))
  })

  it('are rejected if their kind is no string', async () => {
    const config = '{"apiVersion":"v1","kind":{"toString":"x"},"metadata":{"name":"p"}}'
    const got = await wire.request('PATCH', `${maps}/p?fieldManager=m`, { body: config, headers: PATCHES.apply })
    assert.equal(got.status, 400, got.text)
  })

  it('cannot use HTTP methods named like members of Object.prototype', async () => {
    for (const method of ['constructor', 'toString', '__proto__', 'hasOwnProperty']) {
      for (const path of ['/api/v1/pods', '/api/v1/namespaces/default/pods/x', '/healthz', '/apis']) {
        for (const as of ['admin', 'jane'] as const) {
          const [got, plain] = [
            await wire.request(method, path, { http2: true, as }),
            await wire.request('BREW', path, { http2: true, as }),
          ]
          assert.deepEqual(
            [got.status, got.text],
            [plain.status, plain.text.replaceAll('brew', method.toLowerCase())],
            path,
          )
          assert.ok(!got.text.includes('native code'), got.text)
        }
      }
    }
  })

  it('cannot change prototypes', async () => {
    for (const body of [
      '{"__proto__":{"polluted":1},"metadata":{"name":"p1"}}',
      '{"constructor":{"prototype":{"polluted":1}},"metadata":{"name":"p2"}}',
      '{"metadata":{"name":"p3","__proto__":{"polluted":1},"labels":{"__proto__":"x"}}}',
      '{"metadata":{"name":"p4","annotations":{"__proto__":"x","constructor":"y"}}}',
    ]) {
      await post(`${maps}?dryRun=All`, body)
      await wire.request('PATCH', `${maps}/proto`, { body, headers: PATCHES.merge })
      await wire.request('PATCH', `${maps}/proto`, { body, headers: PATCHES.strategic })
    }
    await wire.request(
      'GET',
      `${maps}?__proto__=1&constructor=2&labelSelector=__proto__%3Dx&fieldSelector=__proto__%3Dx`,
    )
    assert.equal(({} as Json).polluted, undefined)
    assert.equal(([] as Json).polluted, undefined)
    assert.deepEqual(Object.keys(Object.prototype), [])
  })

  it('keep every digit of integers', async () => {
    const path = `/apis/batch/v1/namespaces/${ns}/jobs?dryRun=All`
    const job = (seconds: string): string =>
      `{"metadata":{"name":"j"},"spec":{"activeDeadlineSeconds":${seconds},"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`
    for (const seconds of ['9007199254740993', '9223372036854775807', '4611686018427387905', '-0']) {
      const got = await post(path, job(seconds))
      assert.equal(got.status, 201, got.text)
      assert.ok(got.text.includes(`"activeDeadlineSeconds":${seconds === '-0' ? '0' : seconds},`), got.text)
    }
    for (const seconds of ['9223372036854775808', '1.0', '1e3']) {
      const got = await post(path, job(seconds))
      assert.equal(got.status, 400, got.text)
      assert.match(
        got.json().message,
        /cannot unmarshal number \S+ into Go struct field JobSpec\.spec\.activeDeadlineSeconds of type int64$/,
      )
    }
  })

  it('keep the order of keys that look like numbers, and repeated keys cause warnings', async () => {
    const got = await post(
      `${maps}?dryRun=All`,
      '{"metadata":{"name":"k"},"data":{"b":"","10":"","9":"","1":"","a":""}}',
    )
    assert.match(got.text, /"data":\{"1":"","10":"","9":"","a":"","b":""\}/)
    const twice = await post(`${maps}?fieldValidation=Strict`, '{"metadata":{"name":"k"},"data":{"1":"a","1":"b"}}')
    assert.equal(twice.status, 400)
    assert.match(twice.json().message, /duplicate field "data\.1"/)
  })
})

describe('hostile request bodies', () => {
  it('with deep nesting do not exhaust the stack', async () => {
    const nested = (depth: number, open: string, close: string): string =>
      `{"metadata":{"name":"deep"},"x":${open.repeat(depth)}1${close.repeat(depth)}}`
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      assert.equal((await post(`${maps}?dryRun=All`, nested(9_990, open, close))).status, 201)
      for (const depth of [10_001, 20_000, 400_000]) {
        const got = await post(`${maps}?dryRun=All`, nested(depth, open, close))
        assert.ok(got.status === 400 || got.status === 413, `${depth}: ${got.status}`)
      }
    }
    const deep = nested(9_990, '{"a":', '}')
    for (const type of ['merge', 'strategic'] as const) {
      const got = await wire.request('PATCH', `${maps}/proto`, { body: deep, headers: PATCHES[type] })
      assert.equal(got.status, 400, `${type}: ${got.text.slice(0, 200)}`)
    }
  })

  it('that need much work do not block other requests', async () => {
    const MiB = 1 << 20
    const bodies = [
      '['.repeat(3 * MiB - 10),
      `[${'{},'.repeat(MiB - 10)}{}]`,
      `{${Array.from({ length: 200_000 }, (_, n) => `"k${n}":1`).join(',')}}`,
      `{"metadata":{"name":"x"},"data":${'9'.repeat(2 * MiB)}}`,
    ]
    const answers = bodies.map((body) => post(`${maps}?dryRun=All`, body))
    for (let n = 0; n < 20; n++) assert.equal((await wire.request('GET', `${maps}/proto`)).status, 200)
    for (const got of await Promise.all(answers)) assert.ok(got.status >= 400 && got.status < 500, String(got.status))
  })

  it('with random bytes do not crash the server', async () => {
    const random = createSeededRandom(7)
    const pick = <T>(values: readonly T[]): T => values[random.int(values.length)] as T
    const types = [
      'application/json',
      'application/yaml',
      PROTOBUF,
      ...Object.values(PATCHES).map((one) => one['content-type']),
    ]
    const paths = [
      maps,
      `${maps}/proto`,
      `/api/v1/namespaces/${ns}/pods`,
      '/api/v1/nodes/x/status',
      '/apis/apps/v1/deployments',
    ]
    const known = [
      '{"metadata":{"name":"x"}}',
      '[{"op":"add","path":"/data/x","value":1}]',
      'k8s\0',
      '---\n- &a [*a]\n',
      '{"spec":',
      '\0',
    ]
    for (let round = 0; round < 20; round++) {
      const asks = Array.from({ length: 20 }, () => {
        const body = Buffer.concat([Buffer.from(pick(known)), random.bytes(random.int(60))])
        const method = pick(['POST', 'PUT', 'PATCH', 'DELETE'])
        return wire.request(method, `${pick(paths)}?dryRun=All&fieldManager=m`, {
          body,
          headers: { 'content-type': pick(types) },
        })
      })
      for (const got of await Promise.all(asks)) {
        assert.ok(got.status < 500 || !got.text.includes('"reason":"InternalError"'), `${got.status} ${got.text}`)
      }
    }
    assert.equal((await wire.request('GET', '/readyz')).status, 200)
  })

  it('with regular expressions take linear time', { timeout: 60_000 }, async () => {
    const evil = '^(a+)+$'
    const text = { type: 'string', maxLength: 5000 }
    const properties = {
      schema: { ...text, pattern: evil },
      rule: { ...text, 'x-kubernetes-validations': [{ rule: `self.matches('${evil}')` }] },
    }
    await wire.must('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'evils.ex.io' },
      spec: {
        group: 'ex.io',
        scope: 'Namespaced',
        names: { plural: 'evils', kind: 'Evil' },
        versions: [
          { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', properties } } },
        ],
      },
    })
    const path = '/apis/ex.io/v1/namespaces/default/evils'
    while ((await wire.request('GET', path)).status !== 200) await new Promise((resolve) => setImmediate(resolve))
    // A backtracking engine would need exponential time for these.
    for (const field of ['schema', 'rule']) {
      const body = { apiVersion: 'ex.io/v1', kind: 'Evil', metadata: { name: 'e' }, [field]: `${'a'.repeat(4000)}!` }
      assert.equal((await wire.request('POST', path, { body })).status, 422, field)
    }
  })
})

describe('hostile connections', () => {
  it('of watchers that do not read lose no events and block no others', async () => {
    const path = `${maps}/watched`
    await wire.must('POST', maps, { metadata: { name: 'watched' } })
    const { metadata } = await wire.must('GET', path)
    const socket = dial()
    socket.write(
      `GET ${maps}?watch=1&timeoutSeconds=20&fieldSelector=metadata.name%3Dwatched&resourceVersion=${metadata.resourceVersion} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\n\r\n`,
    )
    socket.pause()
    const large = 'x'.repeat(100_000)
    for (let n = 0; n < 60; n++) {
      await wire.must('PUT', path, { metadata: { name: 'watched' }, data: { n: String(n), large } })
    }
    let said = ''
    const whole = new Promise<void>((resolve) => {
      socket.on('data', (chunk: Buffer) => {
        said += chunk.toString('latin1')
        if (said.endsWith('\n\r\n') && said.split('"type":"MODIFIED"').length > 60) resolve()
      })
      socket.on('close', resolve)
    })
    socket.resume()
    await whole
    socket.destroy()
    const seen = [...said.matchAll(/"n":"(\d+)"/g)].map(([, n]) => Number(n))
    assert.deepEqual(
      seen,
      Array.from({ length: 60 }, (_, n) => n),
    )
  })

  it('with slow headers block no others', async () => {
    const slow = Array.from({ length: 50 }, () => {
      const socket = dial()
      socket.write('GET /api/v1/pods HTTP/1.1\r\nHost: x\r\nX-A')
      return socket
    })
    await Promise.all(slow.map((socket) => once(socket, 'secureConnect')))
    for (let n = 0; n < 20; n++) assert.equal((await wire.request('GET', maps)).status, 200)
    for (const socket of slow) socket.destroy()
  })

  it('have a maximum size of headers', async () => {
    const bearer = (length: number): Record<string, string> => ({ authorization: `Bearer ${'t'.repeat(length)}` })
    assert.equal((await wire.request('GET', maps, { headers: bearer(17 << 10) })).status, 401)
    assert.equal((await wire.request('GET', maps, { headers: bearer(50 << 10) })).status, 401)
    assert.equal((await wire.request('GET', maps, { headers: bearer(100 << 10) })).status, 431)
    const endless = await converse(`GET ${maps} HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(2 << 20)}\r\n\r\n`)
    assert.ok(endless === '' || endless.startsWith('HTTP/1.1 431 '), endless)
  })

  it('over HTTP/2 have a maximum number of concurrent requests', async () => {
    const session = connectHttp2(wire.url, { rejectUnauthorized: false })
    const settings = await new Promise<{ maxConcurrentStreams?: number }>((resolve, reject) => {
      session.on('remoteSettings', resolve)
      session.on('error', reject)
    })
    session.destroy()
    assert.ok((settings.maxConcurrentStreams ?? Infinity) <= 250, String(settings.maxConcurrentStreams))
  })

  it('with ambiguous request framing are closed', async () => {
    for (const request of [
      `POST ${maps} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      `GET ${maps} HTTP/1.1\r\nHost : x\r\n\r\n`,
      `GET ${maps} HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n`,
      `POST ${maps} HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
      `POST ${maps} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
      `GET ${maps} HTTP/1.1\r\nHost: x\r\nX: a\nY: b\r\n\r\n`,
      'GET / HTTP/1.1\r\n\r\n',
    ]) {
      const said = await converse(request)
      assert.ok(said === '' || /^HTTP\/1\.1 (?:400|501) /.test(said), `${JSON.stringify(request)}: ${said}`)
    }
  })
})

describe('sources of the program', () => {
  it('contain no eval, and start no shell', () => {
    const root = join(import.meta.dirname, '../../src')
    const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !/\.(?:test|suite|fixture)\.ts$/.test(name),
    )
    assert.ok(sources.length > 300)
    for (const name of sources) {
      const text = readFileSync(join(root, name), 'utf8')
      // CVE-2020-8558: with it, neighbours reach what listens on the loopback. Mode iptables of kube-proxy turns it on, and shuts them out.
      const isAllowed = name === join('cmd', 'proxy', 'iptables-backends.ts')
      assert.ok(isAllowed || !text.includes('route_localnet'), name)
      assert.ok(!/\beval\(|\bnew Function\(|'node:vm'|\bshell: true|insecureHTTPParser/.test(text), name)
      // Runtimes run commands of containers by a call of this name, without a shell; Node's is not to be had.
      assert.ok(!/(?<!runtime\.)\bexecSync\(/.test(text), name)
      assert.ok(!/import \{[^}]*\bexec(?:Sync)?\b[^}]*\} from 'node:child_process'/.test(text), name)
    }
  })
})
