/**
 * Tests which fields sparse objects contain after decoding and encoding.
 *
 * Upstream's own types (k8s.io/api v0.36.4) produced every row: the input and its encodings in JSON and protobuf. A row
 * also has the JSON that the protobuf decodes to if that differs. Protobuf cannot distinguish an empty list from a missing
 * one.
 */
import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'

import { parseJson } from '#lib/json/json.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { decodeValue, zeroValue } from '#meta/codec/decode.ts'
import { encodeJson } from '#meta/codec/encode-json.ts'
import { decodeMessage } from '#meta/codec/protobuf-decode.ts'
import { encodeMessage } from '#meta/codec/protobuf.ts'
import { parseApiVersion } from '#meta/kind.ts'
import type { StructSchema } from '#meta/schema.ts'

import { schemaFor } from './schemas.ts'

interface Row {
  readonly type: string
  readonly given: string
  readonly json: string
  /** Base64. */
  readonly protobuf: string
  /** What the protobuf decodes to, where that is not `json`. */
  readonly back?: string
  /** Has something empty that counts to rules only. */
  readonly settles?: boolean
}

describe('absent and empty fields', () => {
  for (const { type, given, json, protobuf, back = json, settles = false } of rows()) {
    const schema = schemaOf(type)
    it(`stay distinct in JSON and protobuf of ${type} ${given.slice(0, 60)}`, () => {
      const object = decodeValue(schema, parseJson(given), 'Strict', { offences: [], settles }) as JsonObject
      assert.equal(encodeJson(object), json)
      assert.equal(encodeMessage(schema, object).toString('base64'), protobuf)
      const read = decodeMessage(schema, Buffer.from(protobuf, 'base64'))
      assert.equal(encodeJson(read), back)
      if (back === json) assert.equal(encodeMessage(schema, read).toString('base64'), protobuf, 'protobuf again')
      const again = decodeValue(schema, parseJson(json), 'Strict', { offences: [] })
      assert.equal(encodeJson(again), json, 'JSON again')
    })
  }

  it('stay distinct where an empty value has a meaning, until the object is stored', () => {
    const given = { spec: { maxReplicas: 1, behavior: { scaleUp: { policies: [] } }, metrics: [] } }
    const specOf = (settles: boolean): JsonObject => {
      const schema = schemaOf('autoscaling/v2 HorizontalPodAutoscaler')
      const object = decodeValue(schema, structuredClone(given), 'Strict', { offences: [], settles })
      return (object as { spec: JsonObject }).spec
    }
    assert.deepEqual(specOf(false)['behavior'], { scaleUp: { policies: [] } })
    assert.deepEqual(specOf(true)['behavior'], { scaleUp: {} })
    assert.ok(!('metrics' in specOf(false)))
  })

  it('have zero values after decoding an empty protobuf message', () => {
    for (const { type } of rows()) {
      const schema = schemaOf(type)
      assert.deepEqual(decodeMessage(schema, Buffer.alloc(0)), zeroValue(schema), type)
    }
  })

  it('have test cases of at least thirty kinds', () => {
    assert.ok(new Set(rows().map(({ type }) => type)).size >= 30)
  })
})

function schemaOf(type: string): StructSchema {
  const [apiVersion = '', kind = ''] = type.split(' ')
  return schemaFor({ ...parseApiVersion(apiVersion), kind })!
}

function rows(): Row[] {
  return [
    {
      type: 'v1 Pod',
      given: '{}',
      json: '{"metadata":{},"spec":{"containers":null},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhwaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAGhMKABoAIgAqADIASgBaAHIAiAEA',
    },
    {
      type: 'v1 Pod',
      given:
        '{"metadata":{"name":"","labels":{},"annotations":{"b":"","a":null},"creationTimestamp":null,"deletionGracePeriodSeconds":0,"ownerReferences":[{"controller":false}],"generation":0},"spec":{"containers":[{"name":"c","ports":[{}],"env":[{"name":"x","valueFrom":{}}],"livenessProbe":{"httpGet":{"port":0}},"securityContext":{"runAsUser":0,"privileged":false}}],"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false,"hostNetwork":false,"priority":0,"nodeSelector":{},"volumes":[{"name":"v"},{"name":"w","emptyDir":{}}]}}',
      json: '{"metadata":{"deletionGracePeriodSeconds":0,"annotations":{"a":"","b":""},"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"","controller":false}]},"spec":{"volumes":[{"name":"v"},{"name":"w","emptyDir":{}}],"containers":[{"name":"c","ports":[{"containerPort":0}],"env":[{"name":"x","valueFrom":{}}],"resources":{},"livenessProbe":{"httpGet":{"port":0}},"securityContext":{"privileged":false,"runAsUser":0}}],"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false,"priority":0},"status":{}}',
      protobuf:
        'CiwKABIAGgAiACoAMgA4AEIAUABiBQoBYRIAYgUKAWISAGoKCgAaACIAKgAwABKKAQoFCgF2EgAKCQoBdxIEEgIKABJSCgFjEgAqADIKCgAQABgAIgAqADoHCgF4EgAaAEIAUhwKEBIOCgASBggAEAAaABoAIgAQABgAIAAoADAAagByAHoEEAAgAIABAIgBAJABAKIBABoAIAAyAEIASgBSAFgAYABoAIIBAIoBAJoBAKgBAMIBAMgBABoTCgAaACIAKgAyAEoAWgByAIgBAA==',
    },
    {
      type: 'v1 Pod',
      given:
        '{"spec":{"containers":[null],"initContainers":[],"tolerations":[{"tolerationSeconds":0}],"affinity":{},"securityContext":{"fsGroup":0,"sysctls":[{}]}},"status":{"startTime":null,"containerStatuses":[{"started":false}]}}',
      json: '{"metadata":{},"spec":{"containers":[{"name":"","resources":{}}],"securityContext":{"fsGroup":0,"sysctls":[{"name":"","value":""}]},"affinity":{},"tolerations":[{"tolerationSeconds":0}]},"status":{"containerStatuses":[{"name":"","state":{},"lastState":{},"ready":false,"restartCount":0,"image":"","imageID":"","started":false}]}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAElASGAoAEgAqAEIAagByAIABAIgBAJABAKIBABoAMgBCAEoAUgBYAGAAaAByCCgAOgQKABIAggEAigEAkgEAmgEAsgEKCgASABoAIgAoAMIBABonCgAaACIAKgAyAEISCgASABoAIAAoADIAOgBCAEgASgBaAHIAiAEA',
    },
    {
      type: 'v1 Service',
      given:
        '{"spec":{"ports":[{"port":0,"targetPort":0,"nodePort":0}],"selector":{},"allocateLoadBalancerNodePorts":false,"healthCheckNodePort":0}}',
      json: '{"metadata":{},"spec":{"ports":[{"port":0,"targetPort":0}],"allocateLoadBalancerNodePorts":false},"status":{"loadBalancer":{}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEiUKEAoAEgAYACIGCAAQABoAKAAaACIAOgBCAFIAWgBgAGgAoAEAGgIKAA==',
    },
    {
      type: 'v1 Service',
      given:
        '{"spec":{"ports":[{"targetPort":""}],"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}}},"status":{}}',
      json: '{"metadata":{},"spec":{"ports":[{"port":0,"targetPort":""}],"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":0}}},"status":{"loadBalancer":{}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEigKEAoAEgAYACIGCAEQABoAKAAaACIAOgBCAFIAWgBgAGgAcgQKAggAGgIKAA==',
    },
    {
      type: 'v1 ConfigMap',
      given: '{"immutable":false,"data":{"9":"b","__proto__":"c","10":"a","b":null},"binaryData":{"x":null,"y":""}}',
      json: '{"metadata":{},"immutable":false,"data":{"10":"a","9":"b","__proto__":"c","b":""},"binaryData":{"x":null,"y":""}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgcKAjEwEgFhEgYKATkSAWISDgoJX19wcm90b19fEgFjEgUKAWISABoDCgF4GgUKAXkSACAA',
      back: '{"metadata":{},"immutable":false,"data":{"10":"a","9":"b","__proto__":"c","b":""},"binaryData":{"x":"","y":""}}',
    },
    {
      type: 'v1 Secret',
      given: '{"type":"","immutable":false,"data":{"a":"YQ==","b":null,"c":""},"stringData":{}}',
      json: '{"metadata":{},"immutable":false,"data":{"a":"YQ==","b":null,"c":""}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgYKAWESAWESAwoBYhIFCgFjEgAaACgA',
      back: '{"metadata":{},"immutable":false,"data":{"a":"YQ==","b":"","c":""}}',
    },
    {
      type: 'v1 Node',
      given:
        '{"status":{"capacity":{"cpu":"0"},"daemonEndpoints":null,"nodeInfo":{},"conditions":[{}]},"spec":{"unschedulable":false,"taints":[{"timeAdded":null}]}}',
      json: '{"metadata":{},"spec":{"taints":[{"key":"","effect":""}]},"status":{"capacity":{"cpu":"0"},"conditions":[{"type":"","status":"","lastHeartbeatTime":null,"lastTransitionTime":null}],"daemonEndpoints":{"kubeletEndpoint":{"Port":0}},"nodeInfo":{"machineID":"","systemUUID":"","bootID":"","kernelVersion":"","osImage":"","containerRuntimeVersion":"","kubeletVersion":"","kubeProxyVersion":"","operatingSystem":"","architecture":""}}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEhAKABIAGgAgACoGCgASABoAGjgKCgoDY3B1EgMKATAaACIMCgASABoAIgAqADIAMgQKAggAOhQKABIAGgAiACoAMgA6AEIASgBSAA==',
    },
    {
      type: 'v1 Namespace',
      given: '{"spec":{"finalizers":[]},"status":{"conditions":[{}]}}',
      json: '{"metadata":{},"spec":{},"status":{"conditions":[{"type":"","status":"","lastTransitionTime":null}]}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAaDgoAEgoKABIAIgAqADIA',
    },
    {
      type: 'v1 Event',
      given: '{"count":0,"series":{},"reportingComponent":"","related":{}}',
      json: '{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"series":{"lastObservedTime":null},"related":{},"reportingComponent":"","reportingInstance":""}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEg4KABIAGgAiACoAMgA6ABoAIgAqBAoAEgAyADoAQABKAFIAWgQIABIAYgBqDgoAEgAaACIAKgAyADoAcgB6AA==',
    },
    {
      type: 'v1 PersistentVolume',
      given:
        '{"spec":{"capacity":{"storage":"0"},"nfs":{"server":"","path":"","readOnly":false},"accessModes":[],"claimRef":{}}}',
      json: '{"metadata":{},"spec":{"capacity":{"storage":"0"},"nfs":{"server":"","path":""},"claimRef":{}},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEi4KDgoHc3RvcmFnZRIDCgEwEggqBgoAEgAYACIOCgASABoAIgAqADIAOgAqADIAGgYKABIAGgA=',
    },
    {
      type: 'v1 PersistentVolumeClaim',
      given:
        '{"spec":{"storageClassName":"","volumeName":"","resources":{"requests":{}},"dataSource":{"apiGroup":"","kind":"","name":""}}}',
      json: '{"metadata":{},"spec":{"resources":{},"storageClassName":"","dataSource":{"apiGroup":"","kind":"","name":""}},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEg4SABoAKgA6BgoAEgAaABoCCgA=',
    },
    {
      type: 'v1 ReplicationController',
      given: '{"spec":{"replicas":0,"selector":{},"template":{}},"status":{"replicas":0}}',
      json: '{"metadata":{},"spec":{"replicas":0,"template":{"metadata":{},"spec":{"containers":null}}},"status":{"replicas":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEjYIABowChAKABIAGgAiACoAMgA4AEIAEhwaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIAAaCggAEAAYACAAKAA=',
    },
    {
      type: 'v1 ServiceAccount',
      given: '{"automountServiceAccountToken":false,"secrets":[{}],"imagePullSecrets":[{}]}',
      json: '{"metadata":{},"secrets":[{}],"imagePullSecrets":[{}],"automountServiceAccountToken":false}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEg4KABIAGgAiACoAMgA6ABoCCgAgAA==',
    },
    {
      type: 'v1 Endpoints',
      given: '{"subsets":[{"addresses":[{"ip":"","nodeName":""}],"ports":[{"port":0}]}]}',
      json: '{"metadata":{},"subsets":[{"addresses":[{"ip":"","nodeName":""}],"ports":[{"port":0}]}]}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhAKBgoAGgAiABoGCgAQABoA',
    },
    {
      type: 'v1 ResourceQuota',
      given: '{"spec":{"hard":{"pods":"0"},"scopeSelector":{}}}',
      json: '{"metadata":{},"spec":{"hard":{"pods":"0"},"scopeSelector":{}},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEg8KCwoEcG9kcxIDCgEwGgAaAA==',
    },
    {
      type: 'v1 LimitRange',
      given: '{"spec":{"limits":[{"type":"","max":{"cpu":"0"},"min":{}}]}}',
      json: '{"metadata":{},"spec":{"limits":[{"type":"","max":{"cpu":"0"}}]}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhAKDgoAEgoKA2NwdRIDCgEw',
    },
    {
      type: 'apps/v1 Deployment',
      given:
        '{"spec":{"replicas":0,"minReadySeconds":0,"paused":false,"progressDeadlineSeconds":0,"revisionHistoryLimit":0,"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":"0%"}},"selector":{"matchLabels":{}}},"status":{"replicas":0,"collisionCount":0}}',
      json: '{"metadata":{},"spec":{"replicas":0,"selector":{},"template":{"metadata":{},"spec":{"containers":null}},"strategy":{"rollingUpdate":{"maxUnavailable":"0%","maxSurge":0}},"revisionHistoryLimit":0,"progressDeadlineSeconds":0},"status":{"collisionCount":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAElYIABIAGjAKEAoAEgAaACIAKgAyADgAQgASHBoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQAiFgoAEhIKCAgBEAAaAjAlEgYIABAAGgAoADAAOABIABoOCAAQABgAIAAoADgAQAA=',
    },
    {
      type: 'apps/v1 StatefulSet',
      given:
        '{"spec":{"replicas":0,"serviceName":"","volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1"},{}],"updateStrategy":{"rollingUpdate":{"partition":0}},"ordinals":{}}}',
      json: '{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"volumeClaimTemplates":[{"kind":"PersistentVolumeClaim","apiVersion":"v1","metadata":{},"spec":{"resources":{}},"status":{}},{"metadata":{},"spec":{"resources":{}},"status":{}}],"serviceName":"","updateStrategy":{"rollingUpdate":{"partition":0}},"ordinals":{"start":0}},"status":{"replicas":0,"availableReplicas":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEoIBCAAaMAoQCgASABoAIgAqADIAOABCABIcGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBACIcChAKABIAGgAiACoAMgA4AEIAEgQSABoAGgIKACIcChAKABIAGgAiACoAMgA4AEIAEgQSABoAGgIKACoAMgA6BgoAEgIIAEgAWgIIABoQCAAQABgAIAAoADIAOgBYAA==',
      back: '{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"volumeClaimTemplates":[{"metadata":{},"spec":{"resources":{}},"status":{}},{"metadata":{},"spec":{"resources":{}},"status":{}}],"serviceName":"","updateStrategy":{"rollingUpdate":{"partition":0}},"ordinals":{"start":0}},"status":{"replicas":0,"availableReplicas":0}}',
    },
    {
      type: 'apps/v1 DaemonSet',
      given: '{"spec":{"selector":null,"updateStrategy":{"rollingUpdate":{}}},"status":{}}',
      json: '{"metadata":{},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"updateStrategy":{"rollingUpdate":{}}},"status":{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEjoSMAoQCgASABoAIgAqADIAOABCABIcGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoECgASACAAGhAIABAAGAAgACgAMAA4AEAA',
    },
    {
      type: 'apps/v1 ReplicaSet',
      given: '{"spec":{"replicas":0}}',
      json: '{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}}},"status":{"replicas":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEjYIABowChAKABIAGgAiACoAMgA4AEIAEhwaADIAQgBKAFIAWABgAGgAggEAigEAmgEAwgEAIAAaCggAEAAYACAAKAA=',
    },
    {
      type: 'apps/v1 ControllerRevision',
      given: '{"data":null,"revision":0}',
      json: '{"metadata":{},"data":null,"revision":0}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAYAA==',
    },
    {
      type: 'batch/v1 Job',
      given:
        '{"spec":{"parallelism":0,"completions":0,"backoffLimit":0,"suspend":false,"ttlSecondsAfterFinished":0,"podFailurePolicy":{"rules":null},"template":{}},"status":{"ready":0,"uncountedTerminatedPods":{}}}',
      json: '{"metadata":{},"spec":{"parallelism":0,"completions":0,"podFailurePolicy":{"rules":null},"backoffLimit":0,"template":{"metadata":{},"spec":{"containers":null}},"ttlSecondsAfterFinished":0,"suspend":false},"status":{"uncountedTerminatedPods":{},"ready":0}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEj4IABAAMjAKEAoAEgAaACIAKgAyADgAQgASHBoAMgBCAEoAUgBYAGAAaACCAQCKAQCaAQDCAQA4AEAAUABaABoMIAAoADAAOgBCAEgA',
    },
    {
      type: 'batch/v1 CronJob',
      given:
        '{"spec":{"schedule":"","suspend":false,"startingDeadlineSeconds":0,"timeZone":"","jobTemplate":{}},"status":{"lastScheduleTime":null}}',
      json: '{"metadata":{},"spec":{"schedule":"","timeZone":"","startingDeadlineSeconds":0,"suspend":false,"jobTemplate":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}},"status":{}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAElIKABAAGgAgACpGChAKABIAGgAiACoAMgA4AEIAEjIyMAoQCgASABoAIgAqADIAOABCABIcGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBAEIAGgA=',
    },
    {
      type: 'autoscaling/v2 HorizontalPodAutoscaler',
      settles: true,
      given:
        '{"spec":{"minReplicas":0,"maxReplicas":0,"metrics":[{"resource":{"target":{"averageUtilization":0,"value":"0"}}}],"behavior":{"scaleUp":{"stabilizationWindowSeconds":0,"policies":[]}}},"status":{"conditions":null}}',
      json: '{"metadata":{},"spec":{"scaleTargetRef":{"kind":"","name":""},"minReplicas":0,"maxReplicas":0,"metrics":[{"type":"","resource":{"name":"","target":{"type":"","value":"0","averageUtilization":0}}}],"behavior":{"scaleUp":{"stabilizationWindowSeconds":0}}},"status":{"desiredReplicas":0,"currentMetrics":null}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEiUKBgoAEgAaABAAGAAiEQoAIg0KABIJCgASAwoBMCAAKgQKAhgAGgQYACAA',
    },
    {
      type: 'autoscaling/v1 Scale',
      given: '{"spec":{"replicas":0},"status":{"replicas":0,"selector":""}}',
      json: '{"metadata":{},"spec":{},"status":{"replicas":0}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgIIABoECAASAA==',
    },
    {
      type: 'networking.k8s.io/v1 Ingress',
      given:
        '{"spec":{"rules":[{"host":""},{"http":{"paths":null}}],"tls":[{}],"ingressClassName":"","defaultBackend":{"service":{"name":"","port":{"number":0}}}}}',
      json: '{"metadata":{},"spec":{"ingressClassName":"","defaultBackend":{"service":{"name":"","port":{}}},"tls":[{}],"rules":[{},{"http":{"paths":null}}]},"status":{"loadBalancer":{}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEiAKCiIICgASBAoAEAASAhIAGgQKABIAGgYKABICCgAiABoCCgA=',
    },
    {
      type: 'networking.k8s.io/v1 NetworkPolicy',
      given: '{"spec":{"podSelector":{},"ingress":[{}],"egress":[],"policyTypes":[]}}',
      json: '{"metadata":{},"spec":{"podSelector":{},"ingress":[{}]}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgQKABIA',
    },
    {
      type: 'networking.k8s.io/v1 IngressClass',
      given: '{"spec":{"parameters":{"apiGroup":"","scope":"","namespace":""}}}',
      json: '{"metadata":{},"spec":{"parameters":{"apiGroup":"","kind":"","name":"","scope":"","namespace":""}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEg4KABIKCgASABoAIgAqAA==',
    },
    {
      type: 'rbac.authorization.k8s.io/v1 Role',
      given: '{}',
      json: '{"metadata":{},"rules":null}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIA',
    },
    {
      type: 'rbac.authorization.k8s.io/v1 Role',
      given: '{"rules":[]}',
      json: '{"metadata":{},"rules":[]}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIA',
      back: '{"metadata":{},"rules":null}',
    },
    {
      type: 'rbac.authorization.k8s.io/v1 ClusterRole',
      given: '{"rules":[{"verbs":null,"apiGroups":[]}],"aggregationRule":{}}',
      json: '{"metadata":{},"rules":[{"verbs":null}],"aggregationRule":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAaAA==',
    },
    {
      type: 'rbac.authorization.k8s.io/v1 RoleBinding',
      given: '{"subjects":[{}],"roleRef":{}}',
      json: '{"metadata":{},"subjects":[{"kind":"","name":""}],"roleRef":{"apiGroup":"","kind":"","name":""}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEggKABIAGgAiABoGCgASABoA',
    },
    {
      type: 'policy/v1 PodDisruptionBudget',
      given: '{"spec":{"minAvailable":0,"maxUnavailable":""},"status":{"disruptedPods":{"p":null}}}',
      json: '{"metadata":{},"spec":{"minAvailable":0,"maxUnavailable":""},"status":{"disruptedPods":{"p":null},"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhAKBggAEAAaABoGCAEQABoAGhEIABIFCgFwEgAYACAAKAAwAA==',
    },
    {
      type: 'storage.k8s.io/v1 StorageClass',
      given: '{"provisioner":"","allowVolumeExpansion":false,"reclaimPolicy":"","parameters":{}}',
      json: '{"metadata":{},"provisioner":"","reclaimPolicy":"","allowVolumeExpansion":false}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAiADAA',
    },
    {
      type: 'storage.k8s.io/v1 CSINode',
      given: '{"spec":{"drivers":[{"allocatable":{"count":0}}]}}',
      json: '{"metadata":{},"spec":{"drivers":[{"name":"","nodeID":"","topologyKeys":null,"allocatable":{"count":0}}]}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgoKCAoAEgAiAggA',
    },
    {
      type: 'storage.k8s.io/v1 VolumeAttachment',
      given:
        '{"spec":{"source":{"persistentVolumeName":""}},"status":{"attached":false,"attachError":{"time":null,"errorCode":0}}}',
      json: '{"metadata":{},"spec":{"attacher":"","source":{"persistentVolumeName":""},"nodeName":""},"status":{"attached":false,"attachError":{"time":null,"errorCode":0}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEggKABICCgAaABoKCAAaBgoAEgAYAA==',
    },
    {
      type: 'coordination.k8s.io/v1 Lease',
      given:
        '{"spec":{"holderIdentity":"","leaseDurationSeconds":0,"leaseTransitions":0,"renewTime":"2026-01-02T03:04:05.000000Z"}}',
      json: '{"metadata":{},"spec":{"holderIdentity":"","leaseDurationSeconds":0,"renewTime":"2026-01-02T03:04:05.000000Z","leaseTransitions":0}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhAKABAAIggIpevcygYQACgA',
    },
    {
      type: 'discovery.k8s.io/v1 EndpointSlice',
      given: '{"addressType":"","endpoints":[{"conditions":{"ready":false}}],"ports":[{"port":0,"name":""}]}',
      json: '{"metadata":{},"addressType":"","endpoints":[{"addresses":null,"conditions":{"ready":false}}],"ports":[{"name":"","port":0}]}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgQSAggAGgQKABgAIgA=',
    },
    {
      type: 'scheduling.k8s.io/v1 PriorityClass',
      given: '{"value":0,"globalDefault":false,"preemptionPolicy":""}',
      json: '{"metadata":{},"value":0,"preemptionPolicy":""}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEAAYACIAKgA=',
    },
    {
      type: 'certificates.k8s.io/v1 CertificateSigningRequest',
      given: '{"spec":{"request":null,"signerName":"","expirationSeconds":0,"extra":{"a":null,"b":[],"c":[""]}}}',
      json: '{"metadata":{},"spec":{"request":null,"signerName":"","expirationSeconds":0,"extra":{"a":null,"b":[],"c":[""]}},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEh8SABoAMgUKAWESADIFCgFiEgAyBwoBYxICCgA6AEAAGgA=',
      back: '{"metadata":{},"spec":{"request":null,"signerName":"","expirationSeconds":0,"extra":{"a":[],"b":[],"c":[""]}},"status":{}}',
    },
    {
      type: 'authentication.k8s.io/v1 TokenReview',
      given: '{"spec":{"token":""},"status":{"authenticated":false,"user":{"extra":{"k":["v"]}}}}',
      json: '{"metadata":{},"spec":{},"status":{"user":{"extra":{"k":["v"]}}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgIKABoUCAASDgoAEgAiCAoBaxIDCgF2GgA=',
    },
    {
      type: 'authorization.k8s.io/v1 SubjectAccessReview',
      given: '{"spec":{"resourceAttributes":{},"extra":{}},"status":{"allowed":false,"denied":false}}',
      json: '{"metadata":{},"spec":{"resourceAttributes":{}},"status":{"allowed":false}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhQKDgoAEgAaACIAKgAyADoAGgAyABoICAASABoAIAA=',
    },
    {
      type: 'admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration',
      given:
        '{"webhooks":[{"clientConfig":{"service":{"port":0,"path":""}},"rules":[{"scope":""}],"sideEffects":"","timeoutSeconds":0,"admissionReviewVersions":[]}]}',
      json: '{"metadata":{},"webhooks":[{"name":"","clientConfig":{"service":{"namespace":"","name":"","path":"","port":0}},"rules":[{"scope":""}],"sideEffects":"","timeoutSeconds":0,"admissionReviewVersions":[]}]}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhgKABIKCggKABIAGgAgABoEEgIiADIAOAA=',
      back: '{"metadata":{},"webhooks":[{"name":"","clientConfig":{"service":{"namespace":"","name":"","path":"","port":0}},"rules":[{"scope":""}],"sideEffects":"","timeoutSeconds":0,"admissionReviewVersions":null}]}',
    },
    {
      type: 'apiextensions.k8s.io/v1 CustomResourceDefinition',
      given:
        '{"spec":{"preserveUnknownFields":false,"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":false,"items":{"type":""},"minimum":0,"maxLength":0,"default":null,"enum":["a",1,null],"dependencies":{"a":["x"],"b":null},"x-kubernetes-preserve-unknown-fields":false}}}]}}',
      json: '{"metadata":{},"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":[{"name":"","served":false,"storage":false,"schema":{"openAPIV3Schema":{"minimum":0,"maxLength":0,"enum":["a",1,null],"items":{},"additionalProperties":false,"dependencies":{"a":["x"],"b":null},"x-kubernetes-preserve-unknown-fields":false}}}]},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}}',
      protobuf:
        'ChAKABIAGgAiACoAMgA4AEIAEpcBCgAaCAoAEgAiACoAIgA6hAEKABAAGAAiegp4CgASACIAKgAyADoAUABZAAAAAAAAAABgAGgAegCQAQCiAQUKAyJhIqIBAwoBMaIBAMIBIAoeCgASACIAKgAyADoAUABgAHoAkAEAqAIAuAIAwAIA8gECCACCAggKAWESAxIBeIICBQoBYhIAqAIAsAIAuAIAwAIAOABQABoMEggKABIAIgAqACAA',
    },
    {
      type: 'apiregistration.k8s.io/v1 APIService',
      given: '{"spec":{"service":{"port":0},"insecureSkipTLSVerify":false}}',
      json: '{"metadata":{},"spec":{"service":{"port":0},"groupPriorityMinimum":0,"versionPriority":0},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhIKBgoAEgAYABIAGgAgADgAQAAaAA==',
    },
    {
      type: 'flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration',
      given:
        '{"spec":{"type":"","limited":{"nominalConcurrencyShares":0,"lendablePercent":0,"limitResponse":{"queuing":{}}},"exempt":{}}}',
      json: '{"metadata":{},"spec":{"type":"","limited":{"nominalConcurrencyShares":0,"limitResponse":{"type":"","queuing":{"queues":0,"handSize":0,"queueLengthLimit":0}},"lendablePercent":0},"exempt":{}},"status":{}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhYKABIQCAASCgoAEgYIABAAGAAYABoAGgA=',
    },
    {
      type: 'resource.k8s.io/v1 ResourceClaim',
      given:
        '{"spec":{"devices":{"requests":[{"name":"","exactly":{"count":0,"adminAccess":false}}],"config":[{"requests":[],"opaque":{"driver":"","parameters":null}}]}},"status":{"allocation":{"devices":{}}}}',
      json: '{"metadata":{},"spec":{"devices":{"requests":[{"name":"","exactly":{"deviceClassName":"","adminAccess":false}}],"config":[{"opaque":{"driver":"","parameters":null}}]}},"status":{"allocation":{"devices":{}}}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEhoKGAoMCgASCAoAGgAgACgAGggSBgoECgASABoECgIKAA==',
    },
    {
      type: 'node.k8s.io/v1 RuntimeClass',
      given: '{"handler":"","overhead":{"podFixed":{"cpu":"0"}},"scheduling":{"tolerations":[{}]}}',
      json: '{"metadata":{},"handler":"","overhead":{"podFixed":{"cpu":"0"}},"scheduling":{"tolerations":[{}]}}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAaDAoKCgNjcHUSAwoBMCIKEggKABIAGgAiAA==',
    },
    {
      type: 'events.k8s.io/v1 Event',
      given: '{"eventTime":null,"series":{"count":0},"regarding":{},"note":""}',
      json: '{"metadata":{},"eventTime":null,"series":{"count":0,"lastObservedTime":null},"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}',
      protobuf: 'ChAKABIAGgAiACoAMgA4AEIAEgAaBAgAEgAiACoAMgA6AEIOCgASABoAIgAqADIAOgBSAFoAYgQKABIAagByAHgA',
    },
    {
      type: 'v1 PodList',
      given: '{"items":[{},{"metadata":{"name":"a"}}]}',
      json: '{"metadata":{},"items":[{"metadata":{},"spec":{"containers":null},"status":{}},{"metadata":{"name":"a"},"spec":{"containers":null},"status":{}}]}',
      protobuf:
        'CgYKABIAGgASRQoQCgASABoAIgAqADIAOABCABIcGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoTCgAaACIAKgAyAEoAWgByAIgBABJGChEKAWESABoAIgAqADIAOABCABIcGgAyAEIASgBSAFgAYABoAIIBAIoBAJoBAMIBABoTCgAaACIAKgAyAEoAWgByAIgBAA==',
    },
    {
      type: 'v1 DeleteOptions',
      given:
        '{"gracePeriodSeconds":0,"orphanDependents":false,"preconditions":{"uid":"","resourceVersion":""},"dryRun":[]}',
      json: '{"gracePeriodSeconds":0,"preconditions":{"uid":"","resourceVersion":""},"orphanDependents":false}',
      protobuf: 'CAASBAoAEgAYAA==',
    },
  ]
}
