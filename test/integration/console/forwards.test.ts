/** Tests port forwards of the console: who can open them, what they copy, which pod they use and when they end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, describe, it } from 'node:test'

import type { ForwardView } from '#component/console/one-cluster/forwards/forward.ts'
import { eventually } from '#kits/lib/eventually.ts'

import { type Answer, type ConsoleBed, ownPage, startConsoleBed } from './bed.ts'
import { fakePods } from './pod-ports.ts'

const PATH = '/ui/forwards'
const WEB = { kind: 'Pod', namespace: 'shop', name: 'web', port: 80 }
const MIB = 1 << 20

function readyPod(name: string, isReady = true): object {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }]
  const ports = [{ name: 'http', containerPort: 8080 }]
  return { metadata: { name }, spec: { containers: [{ name: 'c', ports }] }, status: { phase: 'Running', conditions } }
}

describe('port forwards', () => {
  let bed: ConsoleBed
  let cookie = ''
  const pods = fakePods()
  let behindService: readonly object[] = []

  before(async () => {
    bed = await startConsoleBed({ upgrade: pods.upgrade })
    cookie = await bed.logIn()
    const spec = { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 'http' }] }
    bed.api.answer = ({ url = '' }, response) => {
      const body = url.includes('/services/')
        ? { metadata: { name: 'web' }, spec }
        : { items: behindService, metadata: {} }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(body))
    }
  })
  after(() => bed?.[Symbol.asyncDispose]())

  const ask = (method: string, path = PATH, body?: object, headers = ownPage(bed.port)): Promise<Answer> =>
    bed.send(method, path, { headers: { cookie, ...headers }, ...(body && { body: JSON.stringify(body) }) })

  async function open(target: object = WEB): Promise<ForwardView> {
    const answer = await ask('POST', PATH, target)
    assert.equal(answer.status, 201, answer.text)
    return JSON.parse(answer.text) as ForwardView
  }

  async function stateOf({ id }: ForwardView): Promise<ForwardView | undefined> {
    const { text } = await ask('GET')
    return (JSON.parse(text) as { items: readonly ForwardView[] }).items.find((one) => one.id === id)
  }

  async function exchange({ localPort }: ForwardView, text: string): Promise<string> {
    const socket = connect({ host: '127.0.0.1', port: localPort, allowHalfOpen: true })
    socket.end(text)
    return await textOf(socket)
  }

  async function textOf(socket: Socket): Promise<string> {
    let received = ''
    socket.on('data', (bytes: Buffer) => (received += bytes.toString()))
    socket.on('error', () => undefined)
    await new Promise((resolve) => socket.once('close', resolve))
    return received
  }

  it('belong to sessions, and are opened only by pages of the console', async () => {
    const { 'x-hk': _own, ...withoutHeader } = ownPage(bed.port)
    const foreign = { ...ownPage(bed.port), origin: 'http://evil.test', 'sec-fetch-site': 'cross-site' }
    const sibling = { ...ownPage(bed.port), origin: `http://a.localhost:${bed.port}`, 'sec-fetch-site': 'same-site' }
    assert.equal((await bed.send('POST', PATH, { headers: ownPage(bed.port), body: '{}' })).status, 401)
    for (const headers of [withoutHeader, foreign, sibling]) {
      assert.equal((await ask('POST', PATH, WEB, headers)).status, 403)
      assert.equal((await ask('DELETE', `${PATH}/x`, undefined, headers)).status, 403)
    }
    assert.equal((await ask('GET', PATH, undefined, foreign)).status, 403)
    assert.deepEqual(JSON.parse((await ask('GET')).text), { items: [] })
  })

  it('need a pod or Service and a port', async () => {
    const wrong = [{}, { ...WEB, kind: 'Node' }, { ...WEB, name: '../x' }, { ...WEB, port: 0 }, { ...WEB, port: '80' }]
    for (const body of wrong) assert.equal((await ask('POST', PATH, body)).status, 400)
    assert.equal((await ask('POST', PATH, { ...WEB, filler: 'x'.repeat(5000) })).status, 400)
    assert.equal((await ask('PUT')).status, 405)
    assert.equal((await ask('DELETE', `${PATH}/none`)).status, 404)
  })

  it('copy both ways, also after the client has ended, and count', async () => {
    const forward = await open()
    assert.match(forward.link, /^http:\/\/[0-9a-f]{16}\.localhost:\d+\/$/)
    const answers = await Promise.all(['a', 'b', 'c'].map((text) => exchange(forward, text)))
    assert.deepEqual(answers, ['web:80 a', 'web:80 b', 'web:80 c'])
    await eventually(
      () => stateOf(forward),
      (state) => state?.openConnections === 0,
    )
    const { connections, sentBytes, receivedBytes, errors, pod } = (await stateOf(forward)) ?? forward
    assert.deepEqual(
      { connections, sentBytes, receivedBytes, errors, pod },
      { connections: 3, sentBytes: 3, receivedBytes: 24, errors: 0, pod: 'web' },
    )
    assert.equal((await ask('DELETE', `${PATH}/${forward.id}`)).status, 204)
    assert.equal(await stateOf(forward), undefined)
    assert.equal(await exchange(forward, 'x'), '')
  })

  it('keep the cookie of the console from pods', async () => {
    const forward = await open()
    const request = `GET / HTTP/1.1\r\nHost: 127.0.0.1:${forward.localPort}\r\nX-A: b\r\nCookie: a=1; ${cookie}\r\n\r\n`
    const answer = await exchange(forward, request)
    assert.match(answer, /^HTTP\/1\.1 421 /)
    assert.ok(answer.includes(forward.link))
    assert.equal((await stateOf(forward))?.sentBytes, 0)
    assert.equal(
      await exchange(forward, 'GET / HTTP/1.1\r\nCookie: a=1\r\n\r\n').then((text) => text.slice(0, 6)),
      'web:80',
    )
  })

  it('send no more than the client reads, and all of it', async () => {
    const all = 100
    let written = 0
    pods.serve = async ({ data }) => {
      const piece = Buffer.alloc(MIB)
      for (; written < all; written++) await data.write(piece)
      data.end()
    }
    const forward = await open()
    const socket = connect(forward.localPort, '127.0.0.1')
    socket.pause()
    await once(socket, 'connect')
    await eventually(
      () => Promise.resolve(written),
      (count) => count > 0,
    )
    let received = 0
    assert.ok(written < all / 2, `${written} MiB were sent to a client that reads nothing`)
    socket.on('data', (bytes: Buffer) => (received += bytes.length))
    socket.resume()
    await once(socket, 'close')
    assert.equal(received, all * MIB)
  })

  it('say why a pod does not take connections', async () => {
    pods.serve = async ({ data, errors }) => {
      await errors.write(Buffer.from('connection refused'))
      data.end()
    }
    const forward = await open()
    assert.equal(await exchange(forward, 'x'), '')
    const state = await eventually(
      () => stateOf(forward),
      (one) => one?.errors === 1,
    )
    assert.equal(state?.lastError, 'connection refused')
  })

  it('follow a Service to another pod', async () => {
    pods.serve = async ({ pod, port, data }) => {
      await data.write(Buffer.from(`${pod}:${port}`))
      data.end()
    }
    behindService = [readyPod('new', false), readyPod('one'), readyPod('two')]
    const forward = await open({ ...WEB, kind: 'Service' })
    assert.equal(await exchange(forward, ''), 'one:8080')
    behindService = [readyPod('two')]
    pods.remove('one')
    await eventually(
      () => exchange(forward, ''),
      (text) => text === 'two:8080',
    )
    behindService = []
    pods.remove('two')
    await eventually(
      () => exchange(forward, ''),
      (text) => text === '',
    )
    assert.equal((await stateOf(forward))?.lastError, 'The Service has no ready pod with this port')
  })

  it('are limited in number, and end with their session', async () => {
    pods.serve = ({ data }) => data.write(Buffer.from('hello'))
    const forward = await open()
    const socket = connect(forward.localPort, '127.0.0.1')
    await once(socket, 'data')
    let status = 201
    for (let more = 0; more < 60 && status === 201; more++) status = (await ask('POST', PATH, WEB)).status
    assert.equal(status, 429)
    assert.equal((await ask('POST', '/ui/logout')).status, 204)
    await once(socket, 'close')
    assert.equal(await exchange(forward, 'x'), '')
    cookie = await bed.logIn()
    assert.deepEqual(JSON.parse((await ask('GET')).text), { items: [] })
  })
})
