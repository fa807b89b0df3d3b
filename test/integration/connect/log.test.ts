/** Tests `pods/log`: requests to a kubelet and its responses. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import type { Settings } from '#control-plane/flags/flags.ts'
import { realClock, sleep } from '#lib/clock.ts'
import type { ResponseWriter } from '#lib/http/exchange.ts'

import { addNode, addPod, type ConnectedPlane, KUBELET_FILES, PODS, startConnectedPlane } from './connected-plane.ts'
import { kubeletTls } from './stand-in-kubelet.ts'

let connected: ConnectedPlane

before(async () => {
  connected = await startConnectedPlane()
  await addNode(connected, 'n1')
  await addNode(connected, 'link-local', '169.254.169.254')
  await addPod(connected, { name: 'one', node: 'n1' })
  await addPod(connected, { name: 'two', node: 'n1', containers: ['a', 'b'] })
  await addPod(connected, { name: 'waiting' })
  await addPod(connected, { name: 'lost', node: 'nowhere' })
  await addPod(connected, { name: 'trap', node: 'link-local' })
})

after(() => connected.stop())

const ask = (path: string): ReturnType<ConnectedPlane['plane']['request']> =>
  connected.plane.request('GET', `${PODS}/${path}`)

describe('pod log through the API server', () => {
  it('is requested from the kubelet with the client certificate of the server, and returned as text', async () => {
    const { kubelet } = connected
    kubelet.answer = (exchange) => exchange.respond(200, ['Content-Encoding', 'identity', 'X-Theirs', '1'], 'line 1\n')
    const answer = await ask('one/log?tailLines=5&timestamps=true&previous&sinceTime=2026-01-01T00:00:00Z&follow=false')
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'text/plain')
    assert.equal(answer.headers.get('x-theirs'), null)
    assert.equal(answer.text, 'line 1\n')
    assert.match(kubelet.caller, /kube-apiserver-kubelet-client/)
    const path = '/containerLogs/default/one/c'
    const query = 'previous=true&sinceTime=2026-01-01T00%3A00%3A00Z&tailLines=5&timestamps=true'
    assert.equal(kubelet.asked.at(-1), `GET ${path}?${query}`)
  })

  it('arrives as soon as the container writes it', async () => {
    let writer: ResponseWriter | undefined
    connected.kubelet.answer = (exchange) => {
      writer = exchange.stream(200, [])
      writer.write(Buffer.from('first'))
    }
    const answer = await connected.fetch(`${PODS}/one/log?follow=true`)
    const reader = answer.body?.getReader()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'first')
    writer?.write(Buffer.from('second'))
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), 'second')
    writer?.end()
    assert.equal((await reader?.read())?.done, true)
  })

  it('is aborted at the kubelet when the client disconnects', async () => {
    const gone = Promise.withResolvers<void>()
    connected.kubelet.answer = (exchange) => {
      const writer = exchange.stream(200, [])
      writer.write(Buffer.from('x'))
      writer.onClose(gone.resolve)
    }
    const control = new AbortController()
    const answer = await connected.fetch(`${PODS}/one/log?follow=true`, { signal: control.signal })
    await answer.body?.getReader().read()
    control.abort()
    await gone.promise
  })

  it('is reported as incomplete if the kubelet aborts it', async () => {
    connected.kubelet.answer = (exchange) => {
      const writer = exchange.stream(200, [])
      writer.write(Buffer.from('x'))
      setImmediate(() => writer.abort())
    }
    const answer = await connected.fetch(`${PODS}/one/log`)
    await assert.rejects(answer.text())
  })

  it('can be read by WebSocket, as bytes or as text', async () => {
    connected.kubelet.answer = (exchange) => exchange.respond(200, [], 'line 1\n')
    const path = `${PODS}/one/log`
    for (const [protocol, expected] of [
      ['binary.k8s.io', 'line 1\n'],
      ['base64.binary.k8s.io', Buffer.from('line 1\n').toString('base64')],
    ] as const) {
      const socket = await connected.webSocket(path, [protocol])
      const messages: string[] = []
      for await (const { data } of socket) messages.push(data.toString())
      assert.deepEqual(messages, ['', expected])
      assert.equal(socket.protocol, protocol)
    }
    await assert.rejects(connected.webSocket(path, ['other']), { status: 403 })
  })
})

describe('refused request of a pod log', () => {
  const refused = async (path: string, status: number, message: string | RegExp): Promise<void> => {
    const answer = await ask(path)
    assert.equal(answer.status, status, answer.text)
    const { message: said } = answer.json()
    if (typeof message === 'string') assert.equal(said, message)
    else assert.match(String(said), message)
  }

  it('names a missing pod or container, or the containers of the pod if none is chosen', async () => {
    await refused('none/log', 404, 'pods "none" not found')
    await refused('one/log?container=x', 400, 'container x is not valid for pod one')
    await refused('two/log', 400, 'a container name must be specified for pod two, choose one of: [a b]')
    await refused('lost/log', 404, 'nodes "nowhere" not found')
  })

  it('names invalid options', async () => {
    await refused('one/log?tailLines=x', 400, 'strconv.ParseInt: parsing "x": invalid syntax')
    await refused('one/log?tailLines=-1', 422, /^PodLogOptions "one" is invalid: tailLines: Invalid value: -1/)
    await refused('one/log?stream=Stdout', 422, /stream: Forbidden: may not be specified/)
    await refused('one/log/more', 404, 'the server could not find the requested resource')
  })

  it('gets an empty response for a pod without a node', async () => {
    const answer = await ask('waiting/log')
    assert.deepEqual([answer.status, answer.text], [204, ''])
  })

  it('contains the error text of the kubelet', async () => {
    const { kubelet } = connected
    const says = (status: number, text: string): void => {
      kubelet.answer = (exchange) => exchange.respond(status, [], text)
    }
    says(400, 'container "c" in pod "one" is waiting to start: ContainerCreating')
    await refused('one/log', 400, 'container "c" in pod "one" is waiting to start: ContainerCreating')
    says(500, 'boom')
    await refused('one/log', 500, 'Internal error occurred: boom')
    says(404, 'no')
    await refused('one/log', 404, 'the server could not find the requested resource ( pods/log one)')
    says(403, 'Forbidden (user=x)')
    await refused('one/log', 403, 'Forbidden (user=x) ( pods/log one)')
  })

  it('does not follow redirects of a kubelet (CVE-2018-1002102, CVE-2020-8559)', async () => {
    const { kubelet } = connected
    const canary = `https://127.0.0.1:${kubelet.port}/canary`
    kubelet.answer = (exchange) => exchange.respond(302, ['Location', canary], '')
    await refused('one/log', 500, /containerLogs\/default\/one\/c": redirects forbidden$/)
    assert.ok(!kubelet.asked.some((request) => request.includes('canary')))
  })

  it('never connects to forbidden kubelet addresses (CVE-2022-3294)', async () => {
    await refused('trap/log', 500, /address not allowed/)
  })

  it('accepts an unknown kubelet certificate only if the client allows that', async () => {
    const kubeletFiles = new Map([...KUBELET_FILES, ['kubelet-ca', kubeletTls.certificate]])
    await using strict = await startConnectedPlane({ kubeletFiles })
    await addNode(strict, 'n1')
    await addPod(strict, { name: 'one', node: 'n1' })
    const refusal = await strict.plane.request('GET', `${PODS}/one/log`)
    assert.equal(refusal.status, 500)
    assert.match(String(refusal.json()['message']), /x509: certificate signed by unknown authority/)
    const answer = await strict.plane.request('GET', `${PODS}/one/log?insecureSkipTLSVerifyBackend=true`)
    assert.deepEqual([answer.status, answer.text], [200, 'fine'])
  })
})

describe('client certificates for kubelets', () => {
  it('are reloaded, and failed reloads are counted', async () => {
    const kubeletFiles = new Map([...KUBELET_FILES, ['kubelet-ca', kubeletTls.certificate]])
    await using plane = await startConnectedPlane({ kubeletFiles })
    await addNode(plane, 'n1')
    await addPod(plane, { name: 'one', node: 'n1' })
    const statusOf = async (query = ''): Promise<number> =>
      (await plane.plane.request('GET', `${PODS}/one/log${query}`)).status
    assert.equal(await statusOf(), 500)
    kubeletFiles.set('kubelet-ca', kubeletTls.ca)
    await plane.plane.running.files.poll()
    assert.equal(await statusOf(), 200)
    assert.equal(await statusOf('?insecureSkipTLSVerifyBackend=1'), 200)
    const { text } = await plane.plane.request('GET', '/metrics')
    assert.match(text, /^kube_apiserver_pod_logs_backend_tls_failure_total 1$/m)
    assert.match(text, /^kube_apiserver_pod_logs_insecure_backend_total\{usage="enforce_tls"\} 2$/m)
    assert.match(text, /^kube_apiserver_pod_logs_insecure_backend_total\{usage="skip_tls_allowed"\} 1$/m)
  })
})

describe('followed pod log through the API server', () => {
  const endless = (connected: ConnectedPlane): void => {
    connected.kubelet.answer = (exchange) => void exchange.stream(200, []).write(Buffer.from('x'))
  }
  const start = async (settings: Partial<Settings> = {}): Promise<ConnectedPlane> => {
    const plane = await startConnectedPlane({ settings })
    await addNode(plane, 'n1')
    await addPod(plane, { name: 'one', node: 'n1' })
    endless(plane)
    return plane
  }

  it('has no timeout', async () => {
    // Long enough for what makes the pod, on a busy machine too.
    const requestTimeoutMs = 2000
    await using plane = await start({ 'request-timeout': requestTimeoutMs })
    const answer = await plane.fetch(`${PODS}/one/log?follow=true&timeout=1ms`)
    await answer.body?.getReader().read()
    await sleep(realClock, requestTimeoutMs + 30)
    assert.equal(plane.kubelet.connections, 1)
    await answer.body?.cancel().catch(() => undefined)
  })

  it('ends when the server stops', async () => {
    const plane = await start()
    const answer = await plane.fetch(`${PODS}/one/log?follow=true`)
    const over = assert.rejects(answer.text())
    await plane.stop()
    await over
  })
})
