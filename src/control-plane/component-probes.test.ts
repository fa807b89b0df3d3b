import assert from 'node:assert/strict'
import { test } from 'node:test'

import type { ComponentHealth } from '#resources/core/componentstatus.ts'

import { type AskUrl, createComponentProbes, type ProbeParts } from './component-probes.ts'

const signal = new AbortController().signal
/** Computing sizes may take long. */
const well: ProbeParts['backend'] = {
  health: async (_signal, { withoutSizes = false } = {}) => ({ ok: withoutSizes, message: 'asked for its size' }),
}
const refused: AskUrl = () => Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }))

async function all(ask: AskUrl, backend: ProbeParts['backend'] = well): Promise<[string, ComponentHealth][]> {
  const probes = [...createComponentProbes({ ask, backend })]
  return Promise.all(
    probes.map(async ([name, probe]): Promise<[string, ComponentHealth]> => [name, await probe(signal)]),
  )
}

test('ComponentStatus probes components at their default ports', async () => {
  const urls: string[] = []
  const healthy = { status: 'True', message: 'ok' }
  const found = await all((url) => {
    urls.push(url)
    return Promise.resolve({ status: 200, text: 'ok' })
  })
  assert.deepEqual(found, [
    ['scheduler', healthy],
    ['controller-manager', healthy],
    ['etcd-0', healthy],
  ])
  assert.deepEqual(urls, ['https://127.0.0.1:10259/healthz', 'https://127.0.0.1:10257/healthz'])
})

test("ComponentStatus has upstream's messages for failed probes", async () => {
  const [[, gone] = []] = await all(refused)
  const text = 'dial tcp 127.0.0.1:10259: connect: connection refused'
  assert.deepEqual(gone, { status: 'False', message: `Get "https://127.0.0.1:10259/healthz": ${text}` })
  const [[, ill] = []] = await all(() => Promise.resolve({ status: 500, text: 'oops' }))
  assert.deepEqual(ill, { status: 'False', message: 'HTTP probe failed with statuscode: 500' })
})

test('ComponentStatus contains the health that the store reports', async () => {
  const sick = { health: () => Promise.resolve({ ok: false, message: 'no leader' }) }
  const lost = { health: () => Promise.reject(new Error('closed')) }
  assert.deepEqual((await all(refused, sick)).at(-1), ['etcd-0', { status: 'False', error: 'no leader' }])
  assert.deepEqual((await all(refused, lost)).at(-1), ['etcd-0', { status: 'False', error: 'closed' }])
})
