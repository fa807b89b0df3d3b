import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createZPages, type ZPage, type ZPages } from './zpages.ts'

describe('pages /statusz and /flagz', () => {
  const startedAtMs = Date.UTC(2026, 0, 2, 3, 4, 5)
  const pages = (isEnabled = true): ZPages =>
    createZPages({
      clock: createVirtualClock(startedAtMs + 3_725_000),
      random: createSeededRandom(1),
      isEnabled: () => isEnabled,
      startedAtMs,
      version: { gitVersion: 'v1.36.4', goVersion: 'node26.1.0', emulated: '1.36' },
      paths: () => ['/', '/api/v1', '/apis', '/livez/ping', '/metrics', '/metrics/slis', '/statusz'],
      flags: new Map([
        ['v', '2'],
        ['bind-address', '127.0.0.1'],
      ]),
    })

  const pageAt = (path: string, accept = ''): ZPage => {
    const page = pages()(path, accept)
    assert.ok(page)
    return page
  }

  it('show the version and the paths as text', () => {
    const { contentType, body } = pageAt('/statusz')
    assert.equal(contentType, 'text/plain; charset=utf-8')
    const [, title, warning, empty, ...lines] = body.split('\n')
    assert.equal(title, 'kube-apiserver statusz')
    assert.match(warning ?? '', /^Warning: This endpoint is not meant to be machine parseable, /)
    assert.equal(empty, '')
    const delimiter = /^Up(.+?) \d/.exec(lines[1] ?? '')?.[1] ?? ''
    assert.deepEqual(
      lines.map((line) => line.replace(delimiter, '|')),
      [
        'Started| Fri Jan  2 03:04:05 UTC 2026',
        'Up| 1 hr 02 min 05 sec',
        'Go version| node26.1.0',
        'Binary version| 1.36.4',
        'Emulation version| 1.36',
        'Paths| /livez /metrics /statusz',
        '',
      ],
    )
  })

  it('return the same content as an object', () => {
    const accept = 'application/json;as=Statusz;v=v1beta1;g=config.k8s.io, */*'
    const { contentType, body, headers } = pageAt('/statusz', accept)
    assert.equal(contentType, 'application/json')
    assert.equal(headers, undefined)
    assert.deepEqual(JSON.parse(body), {
      kind: 'Statusz',
      apiVersion: 'config.k8s.io/v1beta1',
      metadata: { name: 'kube-apiserver' },
      startTime: '2026-01-02T03:04:05Z',
      uptimeSeconds: 3725,
      goVersion: 'node26.1.0',
      binaryVersion: '1.36.4',
      emulationVersion: '1.36',
      paths: ['/livez', '/metrics', '/statusz'],
    })
  })

  it('warn of a deprecated version, in YAML too', () => {
    const accept = 'application/yaml;as=Flagz;v=v1alpha1;g=config.k8s.io'
    const { body, headers } = pageAt('/flagz', accept)
    const warning = '299 - "This version of the flagz endpoint is deprecated. Please use a newer version."'
    assert.equal(headers?.['Warning'], warning)
    assert.match(body, /^flags:\n {2}bind-address: 127\.0\.0\.1\n {2}v: "2"\n/m)
  })

  it('reject unknown kinds and media types', () => {
    for (const accept of ['application/json', 'application/json;as=Flagz;v=v1;g=config.k8s.io', 'image/png']) {
      assert.throws(() => pageAt('/flagz', accept), /only the following media types are accepted/)
    }
  })

  it('do not exist if their feature gates are off', () => {
    assert.equal(pages(false)('/statusz', ''), undefined)
  })
})
