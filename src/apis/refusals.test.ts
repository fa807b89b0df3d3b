/**
 * Tests the errors for bodies that do not fit their kind. Upstream's decoder (sigs.k8s.io/json with k8s.io/api v0.36.4)
 * produced every text.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { CodecError } from '#meta/codec/error.ts'
import { decodeObject } from '#meta/codec/object.ts'
import { parseApiVersion } from '#meta/kind.ts'

import { schemaFor } from './schemas.ts'

const refused: readonly (readonly [type: string, body: string, text: string])[] = [
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":1.0}}',
    'json: cannot unmarshal number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":1e2}}',
    'json: cannot unmarshal number 1e2 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":2147483648}}',
    'json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":-2147483649}}',
    'json: cannot unmarshal number -2147483649 into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":"1"}}',
    'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":true}}',
    'json: cannot unmarshal bool into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":[]}}',
    'json: cannot unmarshal array into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"replicas":{}}}',
    'json: cannot unmarshal object into Go struct field DeploymentSpec.spec.replicas of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":1}',
    'json: cannot unmarshal number into Go struct field Deployment.spec of type v1.DeploymentSpec',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":"x"}',
    'json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":[]}',
    'json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"template":{"spec":{"containers":{}}}}}',
    'json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"template":{"spec":{"containers":[1]}}}}',
    'json: cannot unmarshal number into Go struct field PodSpec.spec.template.spec.containers of type v1.Container',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":true}]}}}}',
    'json: cannot unmarshal bool into Go struct field Container.spec.template.spec.containers.name of type string',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"template":{"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}}}}',
    'json: cannot unmarshal string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1.5}}}}',
    'json: cannot unmarshal number 1.5 into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}',
    'json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":{}}}}}',
    'json: cannot unmarshal object into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"generation":9223372036854775808}}',
    'json: cannot unmarshal number 9223372036854775808 into Go struct field ObjectMeta.metadata.generation of type int64',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"labels":{"a":1}}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"labels":[]}}',
    'json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"labels":"a"}}',
    'json: cannot unmarshal string into Go struct field ObjectMeta.metadata.labels of type map[string]string',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"creationTimestamp":"yesterday"}}',
    'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"creationTimestamp":1}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"creationTimestamp":"2026-02-30T00:00:00Z"}}',
    'parsing time "2026-02-30T00:00:00Z": day out of range',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"ownerReferences":[{"controller":"yes"}]}}',
    'json: cannot unmarshal string into Go struct field OwnerReference.metadata.ownerReferences.controller of type bool',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"finalizers":[1]}}',
    'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.finalizers of type string',
  ],
  [
    'apps/v1 Deployment',
    '{"metadata":{"name":{}},"spec":[]}',
    'json: cannot unmarshal object into Go struct field ObjectMeta.metadata.name of type string',
  ],
  [
    'v1 Pod',
    '{"status":{"phase":1}}',
    'json: cannot unmarshal number into Go struct field PodStatus.status.phase of type v1.PodPhase',
  ],
  [
    'v1 Pod',
    '{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'v1 Pod',
    '{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'v1 Pod',
    '{"spec":{"containers":[{"resources":{"limits":"1"}}]}}',
    'json: cannot unmarshal string into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList',
  ],
  [
    'v1 Pod',
    '{"spec":{"nodeSelector":1}}',
    'json: cannot unmarshal number into Go struct field PodSpec.spec.nodeSelector of type map[string]string',
  ],
  [
    'v1 Pod',
    '{"spec":{"containers":[{"name":1,"resources":{"limits":{"cpu":"x"}}}]}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  ['v1 Secret', '{"data":{"a":"?"}}', 'illegal base64 data at input byte 0'],
  ['v1 Secret', '{"data":{"a":"YQ="}}', 'illegal base64 data at input byte 3'],
  ['v1 Secret', '{"data":{"a":"YWE=="}}', 'illegal base64 data at input byte 4'],
  ['v1 Secret', '{"data":{"a":1}}', 'json: cannot unmarshal number into Go struct field Secret.data of type []uint8'],
  [
    'v1 Secret',
    '{"data":{"a":[256]}}',
    'json: cannot unmarshal number 256 into Go struct field Secret.data of type uint8',
  ],
  ['v1 Secret', '{"data":{"a":"Y\\nQ==\\n="}}', 'illegal base64 data at input byte 6'],
  [
    'v1 ConfigMap',
    '{"data":{"a":null,"b":{}}}',
    'json: cannot unmarshal object into Go struct field ConfigMap.data of type string',
  ],
  [
    'v1 ConfigMap',
    '{"immutable":0}',
    'json: cannot unmarshal number into Go struct field ConfigMap.immutable of type bool',
  ],
  [
    'coordination.k8s.io/v1 Lease',
    '{"spec":{"renewTime":"2026-01-02T03:04:05Z"}}',
    'parsing time "2026-01-02T03:04:05Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"',
  ],
  [
    'coordination.k8s.io/v1 Lease',
    '{"spec":{"renewTime":false}}',
    'json: cannot unmarshal bool into Go struct field LeaseSpec.spec.renewTime of type string',
  ],
  [
    'certificates.k8s.io/v1 CertificateSigningRequest',
    '{"spec":{"request":{}}}',
    'json: cannot unmarshal object into Go struct field CertificateSigningRequestSpec.spec.request of type []uint8',
  ],
  [
    'certificates.k8s.io/v1 CertificateSigningRequest',
    '{"spec":{"extra":{"a":"b"}}}',
    'json: cannot unmarshal string into Go struct field CertificateSigningRequestSpec.spec.extra of type v1.ExtraValue',
  ],
  [
    'apiextensions.k8s.io/v1 CustomResourceDefinition',
    '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":1}}}]}}',
    'boolean or JSON schema expected',
  ],
  [
    'apiextensions.k8s.io/v1 CustomResourceDefinition',
    '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"properties":{"a":{"type":1}}}}}}]}}',
    'json: cannot unmarshal number into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.properties.type of type string',
  ],
  [
    'apiextensions.k8s.io/v1 CustomResourceDefinition',
    '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"minimum":"0"}}}]}}',
    'json: cannot unmarshal string into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.minimum of type float64',
  ],
  [
    'autoscaling/v2 HorizontalPodAutoscaler',
    '{"spec":{"metrics":[{"resource":{"target":{"value":"1.5.5"}}}]}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
  [
    'resource.k8s.io/v1 ResourceClaim',
    '{"spec":{"devices":{"requests":[{"exactly":{"capacity":{"requests":{"a":"1Zi"}}}}]}}}',
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
  ],
]

const offending: readonly (readonly [type: string, body: string, offences: readonly string[]])[] = [
  [
    'v1 ConfigMap',
    '{"metadata":{"foo":1},"data":{"a":"1","a":"2"},"bar":1}',
    ['unknown field "metadata.foo"', 'duplicate field "data.a"', 'unknown field "bar"'],
  ],
  [
    'v1 Pod',
    '{"spec":{"containers":[{"foo":1,"name":"a","name":"b"},{"foo":{"x":1,"x":2}}]}}',
    [
      'unknown field "spec.containers[0].foo"',
      'duplicate field "spec.containers[0].name"',
      'unknown field "spec.containers[1].foo"',
    ],
  ],
  [
    'v1 Pod',
    '{"Metadata":{},"metadata":{"Name":"x","labels":{"a b":"c","a b":"d"}}}',
    ['unknown field "Metadata"', 'unknown field "metadata.Name"', 'duplicate field "metadata.labels.a b"'],
  ],
  [
    'v1 Pod',
    '{"bar":1,"bar":2,"spec":{"nodeName":"a","zork\\"é":1,"nodeName":"b"}}',
    ['unknown field "bar"', 'unknown field "spec.zork\\"é"', 'duplicate field "spec.nodeName"'],
  ],
  [
    'v1 Pod',
    '{"spec":{"volumes":[{"name":"a","emptyDirr":{}}],"securityContext":{"zork":null}},"__proto__":{"a":1},"constructor":1}',
    [
      'unknown field "spec.volumes[0].emptyDirr"',
      'unknown field "spec.securityContext.zork"',
      'unknown field "__proto__"',
      'unknown field "constructor"',
    ],
  ],
  [
    'apiextensions.k8s.io/v1 CustomResourceDefinition',
    '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"foo":1,"items":{"foo":1},"properties":{"p":{"bar":1}}}}}]}}',
    [
      'unknown field "spec.versions[0].schema.openAPIV3Schema.foo"',
      'unknown field "spec.versions[0].schema.openAPIV3Schema.properties.p.bar"',
    ],
  ],
]

describe('values of the wrong type', () => {
  for (const [type, body, text] of refused) {
    it(`are refused in ${type} ${body}`, () => {
      assert.throws(
        () => decode(type, body, 'Strict'),
        (error) =>
          error instanceof CodecError && error.code === 'type' && assert.equal(error.message, text) === undefined,
      )
    })
  }
})

describe('unknown and repeated fields', () => {
  for (const [type, body, offences] of offending) {
    it(`are reported for ${body}`, () => {
      assert.deepEqual(decode(type, body, 'Warn').offences, offences)
      assert.deepEqual(decode(type, body, 'Ignore').offences, [])
      assert.throws(() => decode(type, body, 'Strict'), { message: `strict decoding error: ${offences.join(', ')}` })
    })
  }
})

function decode(type: string, body: string, validation: 'Strict' | 'Warn' | 'Ignore'): ReturnType<typeof decodeObject> {
  const [apiVersion = '', kind = ''] = type.split(' ')
  const defaultKind = { ...parseApiVersion(apiVersion), kind }
  return decodeObject(body, 'application/json', { schemaFor, defaultKind, validation })
}
