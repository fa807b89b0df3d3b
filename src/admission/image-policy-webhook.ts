/**
 * ImagePolicyWebhook: asks an external backend whether a pod may use its images. Off by default; requires a
 * configuration. Upstream's plugin/pkg/admission/imagepolicy, v1.36.
 */
import type { Pod } from '#apis/core/v1.ts'
import type { ImageReview, ImageReviewSpec, ImageReviewStatus } from '#apis/imagepolicy/v1alpha1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import type { Clock } from '#lib/clock.ts'
import { ExpiringCache } from '#lib/collections/expiring-cache.ts'
import { StatusError } from '#meta/status.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface ImagePolicy {
  /** Sends the review to the backend, with retries; rejects without an answer. */
  readonly send: (review: ImageReview, signal: AbortSignal) => Promise<ImageReviewStatus>
  /** The cache lifetime of an answer for pods with the same images and annotations; 0: not cached. */
  readonly allowTtlMs: number
  readonly denyTtlMs: number
  /** True if pods are admitted while the backend does not answer. */
  readonly defaultAllow: boolean
}

export interface ImagePolicyOptions {
  readonly clock: Clock
  readonly imagePolicy?: ImagePolicy
}

/** As upstream. */
const MAX_ANSWERS = 1024

const AUDIT_PREFIX = 'imagepolicywebhook.image-policy.k8s.io/'

/** Annotations that the backend may see. */
const VISIBLE_ANNOTATION = '.image-policy.k8s.io/'

/** Throws without a configuration. */
export function createImagePolicyWebhook({ clock, imagePolicy }: ImagePolicyOptions): AdmissionPlugin {
  if (imagePolicy === undefined) throw new Error('no config specified')
  const answers = new ExpiringCache<ImageReviewStatus>(clock, MAX_ANSWERS)
  return defineAdmission({
    name: 'ImagePolicyWebhook',
    on: ['CREATE', 'UPDATE'],
    resources: ['pods', 'pods/ephemeralcontainers'],

    async validate(attributes) {
      const spec = reviewSpec(attributes)
      const key = JSON.stringify(spec)
      const status = answers.get(key) ?? (await ask(imagePolicy, attributes, spec))
      if (status === 'failed-open') return
      if (answers.get(key) === undefined) {
        answers.set(key, status, status.allowed ? imagePolicy.allowTtlMs : imagePolicy.denyTtlMs)
      }
      for (const [name, value] of Object.entries(status.auditAnnotations ?? {})) {
        attributes.annotate?.(`${AUDIT_PREFIX}${name}`, value)
      }
      if (!status.allowed) throw refuse(attributes, denialText(status))
    },
  })
}

function reviewSpec({ object, subresource, namespace }: Attributes): ImageReviewSpec {
  const { metadata, spec } = object as Pod
  const { containers, initContainers = [], ephemeralContainers = [] } = spec
  const reviewed = subresource === '' ? [...containers, ...initContainers] : ephemeralContainers
  const images = reviewed.map(({ image = '' }) => (image === '' ? {} : { image }))
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => key.includes(VISIBLE_ANNOTATION))
  return {
    ...(images.length > 0 && { containers: images }),
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    ...(namespace !== '' && { namespace }),
  }
}

async function ask(
  { send, defaultAllow }: ImagePolicy,
  attributes: Attributes,
  spec: ImageReviewSpec,
): Promise<ImageReviewStatus | 'failed-open'> {
  const review: ImageReview = {
    kind: 'ImageReview',
    apiVersion: 'imagepolicy.k8s.io/v1alpha1',
    metadata: {},
    spec,
    status: { allowed: false },
  }
  try {
    return await send(review, attributes.signal)
  } catch (error) {
    if (defaultAllow) {
      attributes.annotate?.(`${AUDIT_PREFIX}failed-open`, 'true')
      return 'failed-open'
    }
    // A backend that answers 403 has refused with its own text.
    const { cause } = error as Error
    if (cause instanceof StatusError && cause.status.reason === 'Forbidden') throw cause
    throw refuse(attributes, (error as Error).message)
  }
}

function denialText({ reason = '' }: ImageReviewStatus): string {
  return reason === ''
    ? 'one or more images rejected by webhook backend'
    : `image policy webhook backend denied one or more images: ${reason}`
}
