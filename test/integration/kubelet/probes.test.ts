import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'

import { realClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import type { Runtime } from '../../../src/cri/runtime.ts'
import { createProbeAction, type ProbeAnswer } from '../../../src/kubelet/probes/probe-action.ts'

const ask = createProbeAction({ runtime: {} as Runtime, clock: realClock, random: createSeededRandom(1) })

async function probeServer(listener: RequestListener, path = '/'): Promise<ProbeAnswer> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const target = { containerId: 'c', address: '127.0.0.1', ports: new Map<string, number>() }
  try {
    return await ask({ httpGet: { port, path }, timeoutSeconds: 10 }, target)
  } finally {
    server.close()
  }
}

describe('HTTP probe of a container', () => {
  it('passes with a warning if it is redirected to another host', async () => {
    const answer = await probeServer((_, response) =>
      response.writeHead(302, { location: 'http://127.0.0.2:9/' }).end('<a href="elsewhere">Found</a>'),
    )
    const warning = 'Probe terminated redirects, Response body: <a href="elsewhere">Found</a>'
    assert.deepEqual(answer, { isFine: true, warning })
  })

  it('passes with a warning if a redirect has no address', async () => {
    const answer = await probeServer((_, response) => response.writeHead(304).end())
    assert.deepEqual(answer, { isFine: true, warning: 'Probe terminated redirects, Response body: ' })
  })

  it('includes at most 10 KiB of the body in its message', async () => {
    const answer = await probeServer((_, response) =>
      response.writeHead(301, { location: 'http://127.0.0.2:9/' }).end('x'.repeat(100_000)),
    )
    const warning = `Probe terminated redirects, Response body: ${'x'.repeat(10 * 1024)}`
    assert.deepEqual(answer, { isFine: true, warning })
  })

  it('follows redirects to the same host', async () => {
    const paths: string[] = []
    const answer = await probeServer((request, response) => {
      paths.push(request.url ?? '')
      if (request.url === '/end') response.writeHead(200).end()
      else response.writeHead(307, { location: '/end' }).end()
    }, '/begin')
    assert.deepEqual([answer, paths], [{ isFine: true }, ['/begin', '/end']])
  })

  it('fails after ten redirects and for status codes from 400', async () => {
    let requests = 0
    const loop = await probeServer((_, response) => {
      requests++
      response.writeHead(302, { location: '/again' }).end()
    })
    assert.match(loop.isFine === false ? loop.output : '', /^Get "http:.*\/again": stopped after 10 redirects$/)
    assert.equal(requests, 10)
    const missing = await probeServer((_, response) => response.writeHead(404).end())
    assert.deepEqual(missing, { isFine: false, output: 'HTTP probe failed with statuscode: 404' })
  })
})
