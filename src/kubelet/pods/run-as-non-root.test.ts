import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Container } from '#apis/core/v1.ts'
import type { MemoryImage } from '#kits/cri/memory-images.ts'

import { bedOf, containerOf, podOf } from './worker.fixture.ts'

describe('runAsNonRoot', () => {
  const start = async (image: MemoryImage, container: Partial<Container> = {}) => {
    const { clock, workers, events } = bedOf({ pull: () => image })
    const securityContext = { runAsNonRoot: true }
    const pod = podOf({ securityContext, containers: [containerOf('c', container)] })
    workers.updatePod({ type: 'ADDED', object: pod })
    await clock.advance(5000)
    const [status] = workers.registry.find('default', 'web')?.pod.status.containerStatuses ?? []
    await workers.stop()
    return { state: status?.state, events }
  }
  const where = '(pod: "web_default(u1)", container: c)'

  for (const [name, image, message] of [
    ['an image without USER', {}, `container has runAsNonRoot and image will run as root ${where}`],
    ['an image with USER 0', { uid: 0 }, `container has runAsNonRoot and image will run as root ${where}`],
    [
      'an image with a named user',
      { username: 'nobody' },
      `container has runAsNonRoot and image has non-numeric user (nobody), cannot verify user is non-root ${where}`,
    ],
  ] as const)
    it(`keeps a container of ${name} waiting with CreateContainerConfigError`, async () => {
      const { state, events } = await start(image)
      assert.deepEqual(state?.waiting, { reason: 'CreateContainerConfigError', message })
      assert.ok(events.includes(`Failed: Error: ${message}`), events.join('\n'))
    })

  it('starts a container whose image has a numeric user, or with runAsUser', async () => {
    assert.ok((await start({ uid: 1000 })).state?.running)
    assert.ok((await start({}, { securityContext: { runAsUser: 1000 } })).state?.running)
  })
})
