import assert from 'node:assert/strict'
import { test } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'

import { bedOf, containerOf, podOf } from './worker.fixture.ts'

const WORD = 'correct-horse-battery'
const encoded = (text: string): string => Buffer.from(text).toString('base64')
const SECRETS = {
  word: { data: { word: encoded(WORD) } },
  pull: {
    data: { '.dockerconfigjson': encoded(JSON.stringify({ auths: { 'docker.io': { auth: encoded(`u:${WORD}`) } } })) },
  },
}

/** CVE-2019-11250, CVE-2020-8563 and others. */
for (const [what, fault] of [
  ['nothing fails', undefined],
  ['images cannot be pulled', 'pullImage'],
  ['containers cannot be created', 'createContainer'],
  ['containers cannot be started', 'startContainer'],
] as const) {
  test(`kubelet logs and events contain no secret at any verbosity if ${what}`, async () => {
    const lines: string[] = []
    const stream = { write: (text: string | Uint8Array, done: () => void) => (lines.push(String(text)), done()) }
    const { logger: log } = createLog({ stream, clock: createVirtualClock(), verbosity: 10 })
    const given: string[] = []
    const bed = bedOf({}, { log }, (runtime) => ({
      createContainer: (request) => {
        given.push(...(request.config?.envs ?? []).map(({ value = [] }) => Buffer.from(value).toString()))
        return fault === 'createContainer' ? Promise.reject(new Error('no')) : runtime.createContainer(request)
      },
      ...(fault === 'pullImage' && { pullImage: () => Promise.reject(new Error('no')) }),
      ...(fault === 'startContainer' && { startContainer: () => Promise.reject(new Error('no')) }),
    }))
    for (const [name, secret] of Object.entries(SECRETS)) {
      bed.objects.set(`/api/v1/namespaces/default/secrets/${name}`, { metadata: { name }, ...secret })
    }
    const env = [{ name: 'WORD', valueFrom: { secretKeyRef: { name: 'word', key: 'word' } } }]
    const containers = [containerOf('c', { env, envFrom: [{ secretRef: { name: 'word' } }] })]
    bed.workers.updatePod({ type: 'ADDED', object: podOf({ containers, imagePullSecrets: [{ name: 'pull' }] }) })
    await bed.clock.advance(120_000)
    const output = [...lines, ...bed.events, JSON.stringify(bed.patches)].join('\n')
    for (const form of [WORD, encoded(WORD), encoded(`u:${WORD}`)]) assert.ok(!output.includes(form), output)
    // The secret reached the kubelet.
    if (fault !== 'pullImage') assert.ok(given.includes(WORD))
    await bed.workers.stop()
  })
}
