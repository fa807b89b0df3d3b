import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { PodSpec, PodTemplateSpec } from '#apis/core/v1.ts'
import { everything, nothing, parseSelector, type Selector } from '#meta/labels.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { defaultPodTemplate } from './defaults.ts'
import { podTemplateOptions } from './options.ts'
import { defaultRules, web } from './pod-spec.suite.ts'
import { validatePodTemplate, validatePodTemplateForSelector } from './pod-template.ts'

const options = podTemplateOptions(defaultRules)

function templateOf(spec: Partial<PodSpec> = {}, metadata: ObjectMeta = {}): PodTemplateSpec {
  const template = { metadata, spec: { containers: [web()], ...spec } }
  defaultPodTemplate(template)
  return template
}

const complaints = (template: PodTemplateSpec): string[] =>
  validatePodTemplate(template, fieldPath('template'), options).map((error) =>
    fieldErrorText(error).replace(/ \(e\.g\. .*$/, ' …'),
  )

describe('validation of a pod template', () => {
  it('omits rules that only apply to pods', () => {
    const spec = {
      hostNetwork: true,
      containers: [web({ image: ' nginx ', ports: [{ containerPort: 80 }] })],
      volumes: [
        { name: 'a', image: {} },
        { name: 'b', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } },
      ],
    }
    assert.deepEqual(complaints(templateOf(spec)), [])
  })

  it('rejects ephemeral containers and invalid metadata', () => {
    const metadata = {
      labels: { 'a b': 'x' },
      annotations: {
        'seccomp.security.alpha.kubernetes.io/pod': 'strict',
        'container.apparmor.security.beta.kubernetes.io/nobody': 'x',
        'controller.kubernetes.io/pod-deletion-cost': '01',
        'kubernetes.io/config.mirror': 'x',
      },
    }
    assert.deepEqual(complaints(templateOf({ ephemeralContainers: [web({ name: 'debug' })] }, metadata)), [
      "template.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …",
      'template.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
      'template.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "01": must be a 32bit integer',
      'template.annotations.seccomp.security.alpha.kubernetes.io/pod: Invalid value: "strict": must be a valid seccomp profile',
      'template.annotations[container.apparmor.security.beta.kubernetes.io/nobody]: Invalid value: "nobody": container not found',
      'template.annotations[container.apparmor.security.beta.kubernetes.io/nobody]: Invalid value: "x": invalid AppArmor profile name: "x"',
      'template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template',
    ])
  })

  it('rejects security profiles that contradict their annotations', () => {
    const annotations = {
      'seccomp.security.alpha.kubernetes.io/pod': 'unconfined',
      'container.apparmor.security.beta.kubernetes.io/web': 'localhost/a',
    }
    const securityContext = {
      seccompProfile: { type: 'RuntimeDefault' },
      appArmorProfile: { type: 'Localhost', localhostProfile: 'b' },
    }
    assert.deepEqual(complaints(templateOf({ securityContext }, { annotations })), [
      'template.spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match',
      'template.spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and field must match',
    ])
  })

  const owned = (template: PodTemplateSpec | undefined, selector: Selector): string[] =>
    validatePodTemplateForSelector(template, fieldPath('spec.template'), { selector, kind: 'ReplicaSet', options }).map(
      fieldErrorText,
    )

  it('requires restartPolicy Always in the template of a workload', () => {
    assert.deepEqual(owned(undefined, everything), ['spec.template: Required value'])
    assert.deepEqual(owned(templateOf({ restartPolicy: 'Never', activeDeadlineSeconds: 5 }), everything), [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported',
    ])
  })

  it('requires that the selector of a workload matches the labels', () => {
    const template = templateOf({}, { labels: { app: 'web' } })
    assert.deepEqual(owned(template, parseSelector('app=web')), [])
    assert.deepEqual(owned(template, everything), [])
    const mismatch = [
      'spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`',
    ]
    assert.deepEqual(owned(template, parseSelector('app=db')), mismatch)
    assert.deepEqual(owned(template, nothing), mismatch)
  })
})
