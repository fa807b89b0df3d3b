import { HorizontalPodAutoscalers as HorizontalPodAutoscalersV1 } from '#apis/autoscaling/v1.ts'
import { HorizontalPodAutoscalers } from '#apis/autoscaling/v2.ts'

import type { KindCases, Refusal, Trial } from '../case.ts'

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' }

const both: readonly Refusal[] = [
  { why: 'the name has capitals', set: { '/metadata/name': 'Web' } },
  { why: 'the spec is missing', set: { '/spec': undefined } },
  { why: 'the target is missing', set: { '/spec/scaleTargetRef': undefined } },
  { why: 'the target has no kind', set: { '/spec/scaleTargetRef/kind': '' } },
  { why: 'the target has no name', set: { '/spec/scaleTargetRef/name': '' } },
  { why: 'the target name has a slash', set: { '/spec/scaleTargetRef/name': 'a/b' } },
  { why: 'the least is 0', set: { '/spec/minReplicas': 0 } },
  { why: 'the most is 0', set: { '/spec/maxReplicas': 0 } },
  { why: 'the least is more than the most', set: { '/spec/minReplicas': 6 } },
  { why: 'the most is missing', set: { '/spec/maxReplicas': undefined } },
  { why: 'the most becomes 0', on: 'update', set: { '/spec/maxReplicas': 0 } },
  { why: 'the target loses its name', on: 'update', set: { '/spec/scaleTargetRef/name': '' } },
  {
    why: 'negative counts in the status',
    on: 'update status',
    set: { '/status/currentReplicas': -1, '/status/desiredReplicas': -1 },
  },
]

export const horizontalPodAutoscalerV1: KindCases = {
  kind: HorizontalPodAutoscalersV1,
  valid: {
    metadata: { name: 'web' },
    spec: { scaleTargetRef: target, maxReplicas: 5, targetCPUUtilizationPercentage: 80 },
  },
  refused: [
    ...both,
    { why: 'the share is 0', set: { '/spec/targetCPUUtilizationPercentage': 0 } },
    { why: 'the share is negative', set: { '/spec/targetCPUUtilizationPercentage': -1 } },
  ],
  taken: [
    {
      why: 'metrics of the newer version are no JSON',
      set: { '/metadata/annotations': { 'autoscaling.alpha.kubernetes.io/metrics': '{' } },
    },
  ],
}

const metric = (why: string, ...metrics: object[]): Trial => ({ why, set: { '/spec/metrics': metrics } })
const cpu = { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80 } }
const behave = (why: string, behavior: object): Trial => ({ why, set: { '/spec/behavior': behavior } })
const policy = { type: 'Pods', value: 1, periodSeconds: 60 }

export const horizontalPodAutoscaler: KindCases = {
  kind: HorizontalPodAutoscalers,
  valid: {
    metadata: { name: 'web' },
    spec: { scaleTargetRef: target, maxReplicas: 5, metrics: [{ type: 'Resource', resource: cpu }] },
  },
  refused: [
    ...both,
    metric('a metric has no type', { resource: cpu }),
    metric('a metric type is unknown', { type: 'Odd' }),
    metric('a metric has no source', { type: 'Resource' }),
    metric('a metric has the wrong source', { type: 'Pods', resource: cpu }),
    metric('a metric has two sources', {
      type: 'Resource',
      resource: cpu,
      external: { metric: { name: 'a' }, target: { type: 'Value', value: '1' } },
    }),
    metric('a resource has no name', { type: 'Resource', resource: { ...cpu, name: '' } }),
    metric('a resource has no target', {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization' } },
    }),
    metric('a resource has two targets', {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 80, averageValue: '1' } },
    }),
    metric('a target type is unknown', {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Odd', averageUtilization: 80 } },
    }),
    metric('a target type is missing', {
      type: 'Resource',
      resource: { name: 'cpu', target: { averageUtilization: 80 } },
    }),
    metric('a share is 0', {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 0 } },
    }),
    metric('an average is 0', {
      type: 'Resource',
      resource: { name: 'cpu', target: { type: 'AverageValue', averageValue: '0' } },
    }),
    metric('a container has no name', { type: 'ContainerResource', containerResource: { ...cpu, container: '' } }),
    metric('a metric of pods has no value', {
      type: 'Pods',
      pods: { metric: { name: 'a' }, target: { type: 'AverageValue' } },
    }),
    metric('a metric of pods has no name', {
      type: 'Pods',
      pods: { metric: { name: '' }, target: { type: 'AverageValue', averageValue: '1' } },
    }),
    metric('a metric of pods has a name with a slash', {
      type: 'Pods',
      pods: { metric: { name: 'a/b' }, target: { type: 'AverageValue', averageValue: '1' } },
    }),
    metric('a metric of an object has no object', {
      type: 'Object',
      object: { describedObject: { kind: '', name: '' }, metric: { name: 'a' }, target: { type: 'Value', value: '1' } },
    }),
    metric('a metric of an object has no value', {
      type: 'Object',
      object: { describedObject: { kind: 'A', name: 'a' }, metric: { name: 'a' }, target: { type: 'Value' } },
    }),
    metric('an external metric has two values', {
      type: 'External',
      external: { metric: { name: 'a' }, target: { type: 'Value', value: '1', averageValue: '1' } },
    }),
    behave('a policy type is unknown', { scaleUp: { policies: [{ ...policy, type: 'Odd' }] } }),
    behave('a policy without actions', { scaleUp: { policies: [{ ...policy, value: 0 }] } }),
    behave('a policy has no time', { scaleUp: { policies: [{ ...policy, periodSeconds: 0 }] } }),
    behave('a policy takes too long', { scaleDown: { policies: [{ ...policy, periodSeconds: 1801 }] } }),
    behave('the choice of policies is unknown', { scaleDown: { selectPolicy: 'Odd', policies: [policy] } }),
    behave('the window is negative', { scaleDown: { stabilizationWindowSeconds: -1, policies: [policy] } }),
    behave('the window is too long', { scaleDown: { stabilizationWindowSeconds: 3601, policies: [policy] } }),
    behave('the tolerance is negative', { scaleDown: { tolerance: '-1', policies: [policy] } }),
  ],
  taken: [
    metric('an external metric has a bad selector', {
      type: 'External',
      external: {
        metric: { name: 'a', selector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
        target: { type: 'Value', value: '1' },
      },
    }),
  ],
}
