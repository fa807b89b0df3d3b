/** The HorizontalPodAutoscaler resource: scales a workload by metrics. Stored as v2. */
import { HorizontalPodAutoscalers as OldHorizontalPodAutoscalers } from '#apis/autoscaling/v1.ts'
import {
  type HorizontalPodAutoscaler,
  HorizontalPodAutoscalers,
  type HorizontalPodAutoscalerSpec,
  type HPAScalingRules,
} from '#apis/autoscaling/v2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import type { KubeObject } from '#meta/object.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { roundTripAnnotations } from '#model/conversion/horizontal-pod-autoscaler/annotations.ts'

import { validateCounts } from '../../workload.ts'
import { metricsText } from './metrics-text.ts'
import { validateAutoscaler } from './validation.ts'

export const horizontalPodAutoscaler: Resource<HorizontalPodAutoscaler> = defineResource<HorizontalPodAutoscaler>({
  kind: HorizontalPodAutoscalers,
  otherVersions: [{ kind: OldHorizontalPodAutoscalers, applyDefaults: defaultMinReplicas }],
  applyDefaults,
  prepareCreate: ({ spec }, context) => dropTolerance(spec, undefined, context),
  prepareUpdate: ({ spec }, old, context) => dropTolerance(spec, old.spec, context),
  validate: ({ spec }, context) => validateAutoscaler(spec, undefined, context),
  validateUpdate: ({ spec }, old, context) => validateAutoscaler(spec, old.spec, context),
  status: {
    keeps: ['spec'],
    validateUpdate: ({ status }) => validateCounts(fieldPath('status'), status, ['currentReplicas', 'desiredReplicas']),
  },
  columns: [
    nameColumn,
    { name: 'Reference', value: ({ spec }) => `${spec.scaleTargetRef.kind}/${spec.scaleTargetRef.name}` },
    { name: 'Targets', value: ({ spec, status }) => metricsText(spec.metrics ?? [], status?.currentMetrics ?? []) },
    { name: 'MinPods', value: ({ spec }) => String(spec.minReplicas ?? '<unset>') },
    { name: 'MaxPods', value: ({ spec }) => spec.maxReplicas },
    { name: 'Replicas', value: ({ status }) => status?.currentReplicas ?? 0 },
    ageColumn,
  ],
})

const CPU_PERCENT = 80
const PERIOD_SECONDS = 15

/** Up: at once, by four pods or by 100 percent, whichever is more. */
function upRules(): HPAScalingRules {
  return {
    stabilizationWindowSeconds: 0,
    selectPolicy: 'Max',
    policies: [
      { type: 'Pods', value: 4, periodSeconds: PERIOD_SECONDS },
      { type: 'Percent', value: 100, periodSeconds: PERIOD_SECONDS },
    ],
  }
}

/** Down: all at once. The controller decides on the stabilization window. */
function downRules(): HPAScalingRules {
  return { selectPolicy: 'Max', policies: [{ type: 'Percent', value: 100, periodSeconds: PERIOD_SECONDS }] }
}

function applyDefaults({ metadata, spec }: HorizontalPodAutoscaler): void {
  // v1 carries fields of v2 in annotations; here they are fields.
  for (const name of roundTripAnnotations) delete metadata.annotations?.[name]
  spec.minReplicas ??= 1
  if ((spec.metrics ?? []).length === 0) {
    const target = { type: 'Utilization', averageUtilization: CPU_PERCENT }
    spec.metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }]
  }
  if (spec.behavior === undefined) return
  spec.behavior.scaleUp = { ...upRules(), ...spec.behavior.scaleUp }
  spec.behavior.scaleDown = { ...downRules(), ...spec.behavior.scaleDown }
}

/** The conversion from v1 fills in the other fields. */
function defaultMinReplicas(object: KubeObject): void {
  const { spec } = object as KubeObject & { spec: { minReplicas?: number } }
  spec.minReplicas ??= 1
}

function dropTolerance(
  { behavior }: HorizontalPodAutoscalerSpec,
  old: HorizontalPodAutoscalerSpec | undefined,
  { isEnabled }: RuleContext,
): void {
  const inUse = [old?.behavior?.scaleDown, old?.behavior?.scaleUp].some((rules) => rules?.tolerance !== undefined)
  if (inUse || isEnabled('HPAConfigurableTolerance')) return
  delete behavior?.scaleDown?.tolerance
  delete behavior?.scaleUp?.tolerance
}
