/** Tests port forwards of the console through a real API server, to a fake kubelet. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, it } from 'node:test'

import type { ConsoleTarget } from '#component/console/one-cluster/cluster-route.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient } from '#lib/http/client.ts'

import { addNode, addPod, startConnectedPlane } from '../connect/connected-plane.ts'
import { acceptSpdy } from '../connect/stand-in-kubelet.ts'
import { ownPage, startConsoleBed } from './bed.ts'

describe('a port forward', () => {
  it('reaches a pod through the API server and its kubelet', async () => {
    await using closing = new AsyncDisposableStack()
    const connected = closing.use(await startConnectedPlane())
    await addNode(connected, 'one')
    await addPod(connected, { name: 'db', node: 'one', port: 5432 })
    connected.kubelet.answer = async (exchange) => {
      const { stream } = acceptSpdy(exchange, 'portforward.k8s.io')
      const [data, errors] = await Promise.all([stream('data'), stream('error')])
      for await (const bytes of data) await data.write(Buffer.from(`${data.headers.get('port')} ${bytes.toString()}`))
      data.end()
      errors.end()
    }
    const { plane } = connected
    const client = createHttpClient({ clock: realClock, tls: { ca: plane.ca }, http1Only: true })
    closing.defer(() => client.close())
    const authorization = `Bearer ${plane.token}`
    const target: ConsoleTarget = {
      server: plane.url,
      client: {
        request: (request) => client.request({ ...request, headers: { ...request.headers, authorization } }),
        upgrade: (request) => client.upgrade({ ...request, headers: { ...request.headers, authorization } }),
      },
    }
    const bed = closing.use(await startConsoleBed({ target }))
    const headers = { cookie: await bed.logIn(), ...ownPage(bed.port) }
    const body = JSON.stringify({ kind: 'Pod', namespace: 'default', name: 'db', port: 5432 })
    const { status, text } = await bed.send('POST', '/ui/forwards', { headers, body })
    assert.equal(status, 201, text)
    const { localPort } = JSON.parse(text) as { localPort: number }
    const socket = connect({ host: '127.0.0.1', port: localPort, allowHalfOpen: true })
    socket.end('select 1')
    let received = ''
    for await (const bytes of socket) received += (bytes as Buffer).toString()
    assert.equal(received, '5432 select 1')
  })
})
