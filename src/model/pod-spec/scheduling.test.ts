import { describePodRules } from './pod-spec.suite.ts'

describePodRules('scheduling of a pod spec', [
  {
    title: 'node affinity requires valid terms',
    patch: {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] },
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 101,
              preference: {
                matchExpressions: [
                  { key: 'a', operator: 'Gt' },
                  { key: 'bad key', operator: 'Like', values: ['x'] },
                ],
                matchFields: [{ key: 'spec.x', operator: 'Exists' }],
              },
            },
          ],
        },
      },
    },
    errors: [
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100',
      "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'",
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].operator: Invalid value: "Like": not a valid selector operator',
      `spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[1].key: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
    ],
  },
  {
    title: 'pod affinity requires a topology key',
    patch: {
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: '', namespaces: ['Bad_'], matchLabelKeys: ['a'] },
          ],
        },
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            {
              weight: 0,
              podAffinityTerm: {
                topologyKey: 'z',
                labelSelector: {
                  matchLabels: { a: '1' },
                  matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }],
                },
                matchLabelKeys: ['a'],
                mismatchLabelKeys: ['a'],
              },
            },
          ],
        },
      },
    },
    errors: [
      `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespace: Invalid value: "Bad_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character …`,
      'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set',
      'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty',
      'spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty',
      `spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 0: must be in the range 1-100',
      'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector',
      'spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys',
    ],
  },
  {
    title: 'scheduling has valid tolerations',
    patch: {
      tolerations: [
        { operator: 'Equal', value: 'x' },
        { key: 'a', operator: 'Exists', value: 'x' },
        { key: 'b', operator: 'Gt', value: '1' },
        { key: 'c', operator: 'Like', effect: 'Never' },
        { key: 'd', value: 'bad value!', effect: 'NoSchedule', tolerationSeconds: 5 },
      ],
    },
    errors: [
      'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
      'spec.tolerations[1].operator: Invalid value: "x": value must be empty when `operator` is \'Exists\'',
      'spec.tolerations[2].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"',
      'spec.tolerations[3].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
      'spec.tolerations[3].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
      'spec.tolerations[4].effect: Invalid value: "NoSchedule": effect must be \'NoExecute\' when `tolerationSeconds` is set',
      `spec.tolerations[4].operator: Invalid value: "bad value!": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
    ],
  },
  {
    title: 'scheduling has valid topology spread constraints',
    patch: {
      topologySpreadConstraints: [
        { maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'Panic', minDomains: 0, nodeAffinityPolicy: 'X' },
        { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule', matchLabelKeys: ['a'] },
        {
          maxSkew: 1,
          topologyKey: 'z',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] },
        },
      ],
    },
    errors: [
      'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
      'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
      'spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Panic": supported values: "DoNotSchedule", "ScheduleAnyway"',
      'spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: must be greater than zero',
      'spec.topologySpreadConstraints[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not Panic',
      'spec.topologySpreadConstraints[0].nodeAffinityPolicy: Unsupported value: "X": supported values: "Honor", "Ignore"',
      'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"',
      'spec.topologySpreadConstraints[1].matchLabelKeys: Forbidden: must not be specified when labelSelector is not set',
      "spec.topologySpreadConstraints[2].labelSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
    ],
  },
  {
    title: 'scheduling has valid gates, names and classes',
    patch: {
      schedulingGates: [{ name: 'a' }, { name: 'a' }, { name: 'bad key' }],
      readinessGates: [{ conditionType: '' }],
      nodeName: 'Bad_',
      serviceAccountName: 'Bad_',
      priorityClassName: 'Bad_',
      runtimeClassName: '',
      preemptionPolicy: 'Sometimes',
      nodeSelector: { 'bad key': 'x' },
      activeDeadlineSeconds: 0,
      schedulingGroup: {},
    },
    errors: [
      `spec.nodeSelector: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      'spec.readinessGates[0].conditionType: Invalid value: "": name part must be non-empty',
      `spec.readinessGates[0].conditionType: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      'spec.schedulingGates[1]: Duplicate value: "a"',
      `spec.schedulingGates[2]: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character …`,
      `spec.serviceAccountName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      `spec.nodeName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
      `spec.priorityClassName: Invalid value: "Bad_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      `spec.runtimeClassName: Invalid value: "": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character …`,
      'spec.preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"',
      'spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`',
    ],
  },
])
