import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { ImageReview, ImageReviewStatus } from '#apis/imagepolicy/v1alpha1.ts'
import { refusal, type SampleWrite } from '#kits/admission/sample-write.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { forbiddenError } from '#meta/status-errors.ts'

import { createImagePolicyWebhook, type ImagePolicy } from './image-policy-webhook.ts'
import type { AdmissionPlugin } from './plugin.ts'

interface Backend {
  readonly plugin: AdmissionPlugin
  readonly reviews: ImageReview[]
  readonly clock: VirtualClock
}

function create(answer: ImageReviewStatus | Error, policy: Partial<ImagePolicy> = {}): Backend {
  const reviews: ImageReview[] = []
  const clock = createVirtualClock()
  const imagePolicy: ImagePolicy = {
    send(review) {
      reviews.push(review)
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer)
    },
    allowTtlMs: 5000,
    denyTtlMs: 1000,
    defaultAllow: false,
    ...policy,
  }
  return { plugin: createImagePolicyWebhook({ clock, imagePolicy }), reviews, clock }
}

const pod = (more: object = {}): SampleWrite => ({
  resource: 'pods',
  object: {
    metadata: { name: 'p', annotations: { 'a.image-policy.k8s.io/break-glass': 'x', other: 'y' } },
    spec: {
      containers: [{ name: 'c', image: 'app:1' }],
      initContainers: [{ name: 'i', image: 'init:1' }],
      ephemeralContainers: [{ name: 'e', image: 'debug:1' }],
    },
  },
  ...more,
})

describe('ImagePolicyWebhook', () => {
  it('sends the images of a pod, its image policy annotations and its namespace', async () => {
    const { plugin, reviews } = create({ allowed: true })
    assert.equal(await refusal(plugin, pod()), undefined)
    assert.deepEqual(reviews, [
      {
        kind: 'ImageReview',
        apiVersion: 'imagepolicy.k8s.io/v1alpha1',
        metadata: {},
        spec: {
          containers: [{ image: 'app:1' }, { image: 'init:1' }],
          annotations: { 'a.image-policy.k8s.io/break-glass': 'x' },
          namespace: 'ns',
        },
        status: { allowed: false },
      },
    ])
  })

  it('sends images of ephemeral containers and ignores other subresources', async () => {
    const { plugin, reviews } = create({ allowed: true })
    await refusal(plugin, pod({ subresource: 'ephemeralcontainers' }))
    assert.deepEqual(reviews[0]?.spec.containers, [{ image: 'debug:1' }])
    await refusal(plugin, pod({ subresource: 'status' }))
    assert.equal(reviews.length, 1)
  })

  it('rejects a pod with the reason that the webhook returns', async () => {
    const denied = 'pods "p" is forbidden: image policy webhook backend denied one or more images: unsigned'
    assert.equal(await refusal(create({ allowed: false, reason: 'unsigned' }).plugin, pod()), denied)
    const silent = 'pods "p" is forbidden: one or more images rejected by webhook backend'
    assert.equal(await refusal(create({ allowed: false }).plugin, pod()), silent)
  })

  it('caches answers of the webhook, approvals longer than denials', async () => {
    for (const [allowed, ttlMs] of [
      [true, 5000],
      [false, 1000],
    ] as const) {
      const { plugin, reviews, clock } = create({ allowed })
      await refusal(plugin, pod())
      await clock.advance(ttlMs - 1)
      await refusal(plugin, pod())
      assert.equal(reviews.length, 1)
      await clock.advance(1)
      await refusal(plugin, pod())
      assert.equal(reviews.length, 2)
    }
  })

  it('copies annotations of the webhook to the audit event', async () => {
    const notes: string[] = []
    const annotate = (key: string, value: string): void => void notes.push(`${key}=${value}`)
    await refusal(create({ allowed: true, auditAnnotations: { rule: '7' } }).plugin, pod({ annotate }))
    await refusal(create(new Error('gone'), { defaultAllow: true }).plugin, pod({ annotate }))
    assert.deepEqual(notes, [
      'imagepolicywebhook.image-policy.k8s.io/rule=7',
      'imagepolicywebhook.image-policy.k8s.io/failed-open=true',
    ])
  })

  it('rejects pods while the webhook is unreachable, unless defaultAllow is set', async () => {
    const away = new Error('Post "https://x": EOF')
    assert.equal(await refusal(create(away).plugin, pod()), 'pods "p" is forbidden: Post "https://x": EOF')
    assert.equal(await refusal(create(away, { defaultAllow: true }).plugin, pod()), undefined)
  })

  it('responds with 403 if the webhook responds with 403', async () => {
    const cause = forbiddenError({ group: '', resource: '' }, '', 'no credentials')
    const { plugin } = create(new Error(cause.message, { cause }))
    assert.equal(await refusal(plugin, pod()), cause.message)
  })

  it('fails at start without a configuration file', () => {
    assert.throws(() => createImagePolicyWebhook({ clock: createVirtualClock() }), { message: 'no config specified' })
  })
})
