/** autoscaling: how many pods, by how much they have to do. */
import type { DescriptionTable } from './table.ts'

const metricTypes = 'Resource, ContainerResource, Pods, Object or External; the member of that name is set.'
const sources = {
  resource: 'CPU or memory of the pods, as their requests put it.',
  containerResource: 'The same of one container in each pod.',
  pods: 'A metric of the pods, on average.',
  object: 'A metric of another object, such as an Ingress.',
  external: 'A metric from outside of the cluster.',
}
const metric = 'Which metric.'
const target = 'What it shall be.'
const current = 'What it is.'

export const autoscaling: DescriptionTable = {
  HorizontalPodAutoscaler: { '': 'Changes the number of pods of a workload by how much they have to do.' },
  HorizontalPodAutoscalerSpec: {
    '': 'What is scaled, within which limits, by which metrics.',
    scaleTargetRef: 'What is scaled, such as a Deployment.',
    minReplicas: 'At least so many. Default: 1.',
    maxReplicas: 'At most so many.',
    metrics: 'What counts; the metric that asks for most pods wins. Default: 80% of the requested CPU.',
    behavior: 'How fast it goes up and down.',
    targetCPUUtilizationPercentage: 'How much of its requested CPU a pod shall use on average.',
  },
  HorizontalPodAutoscalerStatus: {
    '': 'What an autoscaler sees and does.',
    lastScaleTime: 'When it last changed the number.',
    currentReplicas: 'How many pods there are.',
    desiredReplicas: 'How many there shall be.',
    currentMetrics: 'What the metrics say.',
    currentCPUUtilizationPercentage: 'How much of its requested CPU a pod uses on average.',
  },
  HorizontalPodAutoscalerBehavior: {
    '': 'How fast the number of pods changes.',
    scaleUp: 'Upwards.',
    scaleDown: 'Downwards.',
  },
  HPAScalingRules: {
    '': 'How fast the number of pods changes in one direction.',
    stabilizationWindowSeconds: 'Look back so long and take the most cautious wish. Default: 0 up, 300 down.',
    selectPolicy: 'Which policy counts: Max (the default), Min, or Disabled to not go this way.',
    policies: 'How much at a time.',
    tolerance: 'How far off the metric may be before anything is done. Default: a tenth.',
  },
  HPAScalingPolicy: {
    '': 'How much may change in some time.',
    type: 'Pods or Percent.',
    value: 'So many.',
    periodSeconds: 'In so many seconds.',
  },
  CrossVersionObjectReference: {
    '': 'Points to an object in the same namespace.',
    kind: 'Its kind.',
    name: 'Its name.',
    apiVersion: 'Its API version.',
  },
  MetricSpec: { '': 'A metric and what it shall be.', type: metricTypes, ...sources },
  MetricStatus: { '': 'A metric and what it is.', type: metricTypes, ...sources },
  MetricIdentifier: { '': 'Names a metric.', name: 'Its name.', selector: 'Only values with such labels.' },
  MetricTarget: {
    '': 'What a metric shall be.',
    type: 'Utilization, Value or AverageValue.',
    value: 'In all.',
    averageValue: 'For each pod on average.',
    averageUtilization: 'In percent of what the pods request, on average.',
  },
  MetricValueStatus: {
    '': 'What a metric is.',
    value: 'In all.',
    averageValue: 'For each pod on average.',
    averageUtilization: 'In percent of what the pods request, on average.',
  },
  ResourceMetricSource: { '': 'CPU or memory of the pods.', name: 'Which of them.', target },
  ResourceMetricStatus: { '': 'CPU or memory of the pods.', name: 'Which of them.', current },
  ContainerResourceMetricSource: {
    '': 'CPU or memory of one container.',
    name: 'Which of them.',
    container: 'The container.',
    target,
  },
  ContainerResourceMetricStatus: {
    '': 'CPU or memory of one container.',
    name: 'Which of them.',
    container: 'The container.',
    current,
  },
  PodsMetricSource: { '': 'A metric of the pods.', metric, target },
  PodsMetricStatus: { '': 'A metric of the pods.', metric, current },
  ObjectMetricSource: { '': 'A metric of an object.', metric, target, describedObject: 'The object.' },
  ObjectMetricStatus: { '': 'A metric of an object.', metric, current, describedObject: 'The object.' },
  ExternalMetricSource: { '': 'A metric from outside.', metric, target },
  ExternalMetricStatus: { '': 'A metric from outside.', metric, current },
  Scale: { '': 'How many replicas something has, in the same form for all kinds that have any.' },
  ScaleSpec: { '': 'How many there shall be.', replicas: 'So many.' },
  ScaleStatus: { '': 'How many there are.', replicas: 'So many.', selector: 'Labels of the pods, as text.' },
}
