/**
 * Tests KubeSchedulerConfiguration: error texts and resulting documents are those of kube-scheduler v1.36.4 for the
 * same files.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { aggregateText } from '#meta/validation/field-error.ts'
import { fieldPath } from '#meta/validation/field-path.ts'

import { expandPoints, type PluginSets, scoreWeights } from '../framework/extension-points.ts'
import { readConfiguration, type SchedulerConfiguration } from './configuration.ts'
import { withDefaults } from './defaults.ts'
import { ARGS } from './plugin-args.ts'
import { shownConfiguration, writtenConfiguration } from './showing.ts'
import { configurationErrors } from './validation.ts'

const HEAD = 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n'
const isEnabled = (gate: string): boolean => ['DynamicResourceAllocation', 'NodeDeclaredFeatures'].includes(gate)

function load(more: string): SchedulerConfiguration {
  return withDefaults(readConfiguration(`${HEAD}${more}`), isEnabled)
}

const problems = (more: string): string => aggregateText(configurationErrors(load(more), isEnabled))

const NAME_PART =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"

describe('KubeSchedulerConfiguration', () => {
  const unreadable: readonly (readonly [what: string, source: string, message: string])[] = [
    [
      'has unknown fields',
      `${HEAD}foo: 1\nprofiles: [{bar: 1}]`,
      'strict decoding error: unknown field "foo", unknown field "profiles[0].bar"',
    ],
    [
      'has plugin arguments with unknown fields',
      `${HEAD}profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {foo: 1}}]}]`,
      'strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "foo"',
    ],
    [
      'has the arguments of another plugin',
      `${HEAD}profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: NodeAffinityArgs}}]}]`,
      'decoding .profiles[0].pluginConfig[0]: args for plugin NodeResourcesFit were not of type NodeResourcesFitArgs.kubescheduler.config.k8s.io, got NodeAffinityArgs.kubescheduler.config.k8s.io',
    ],
    [
      'has another kind',
      'apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs\n',
      "couldn't decode as KubeSchedulerConfiguration, got kubescheduler.config.k8s.io/v1, Kind=NodeAffinityArgs: ",
    ],
    [
      'has a removed version',
      'apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n',
      'no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3" in scheme "pkg/runtime/scheme.go:111"',
    ],
    [
      'has no apiVersion',
      'kind: KubeSchedulerConfiguration\n',
      "Object 'apiVersion' is missing in 'kind: KubeSchedulerConfiguration\n'",
    ],
    [
      'has a string for a number',
      `${HEAD}parallelism: "a"`,
      'json: cannot unmarshal string into Go struct field KubeSchedulerConfiguration.parallelism of type int32',
    ],
  ]
  for (const [what, source, message] of unreadable) {
    it(`is refused when it ${what}`, () => {
      assert.throws(() => readConfiguration(source), { message })
    })
  }

  const wrong: readonly (readonly [what: string, more: string, message: string])[] = [
    [
      'numbers out of range',
      'parallelism: -1\npercentageOfNodesToScore: 200\npodInitialBackoffSeconds: -1\npodMaxBackoffSeconds: -2\nprofiles: [{schedulerName: "", percentageOfNodesToScore: -1, plugins: {score: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: EBSLimits},{name: NodeAffinity},{name: NodeAffinity}]}]',
      '[parallelism: Invalid value: -1: should be an integer value greater than zero, profiles[0].schedulerName: Required value, profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100], profiles[0].plugins.score.enabled[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1"), profiles[0].pluginConfig[0]: Invalid value: "EBSLimits": was invalid in version "v1" (KubeSchedulerConfiguration is version "kubescheduler.config.k8s.io/v1"), profiles[0].pluginConfig[2]: Duplicate value: "NodeAffinity", percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100], podInitialBackoffSeconds: Invalid value: -1: must be greater than 0, podMaxBackoffSeconds: Invalid value: -2: must be greater than or equal to PodInitialBackoffSeconds]',
    ],
    [
      'missing or repeated profile names',
      'profiles: [{schedulerName: a},{schedulerName: a},{}]',
      '[profiles[1].schedulerName: Duplicate value: {}, profiles[2].schedulerName: Required value]',
    ],
    [
      'inconsistent leader election times',
      'leaderElection: {leaseDuration: 1s, renewDeadline: 2s, retryPeriod: 3s, resourceLock: endpoints}\nclientConnection: {burst: -1}',
      '[clientConnection.burst: Invalid value: -1: must be non-negative, leaderElection.leaseDuration: Invalid value: "2s": must be greater than `RenewDeadline`, leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"]',
    ],
    [
      'different queue sorts',
      'profiles: [{schedulerName: a},{schedulerName: b, plugins: {queueSort: {enabled: [{name: Foo}], disabled: [{name: "*"}]}}}]',
      'profiles[1].plugins.queueSort: Invalid value: {"Enabled":[{"Name":"Foo","Weight":0}],"Disabled":[{"Name":"*","Weight":0}]}: must be the same for all profiles',
    ],
    [
      'invalid extenders',
      'extenders: [{urlPrefix: "http://x", prioritizeVerb: p, bindVerb: b, managedResources: [{name: "cpu"},{name: "a b"},{name: example.com/foo},{name: example.com/foo}]},{urlPrefix: "http://x", bindVerb: b}]',
      `[extenders[0].weight: Invalid value: 0: must have a positive weight applied to it, extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name, extenders[0].managedResources[1].name: Invalid value: "a b": ${NAME_PART}, extenders[0].managedResources[3].name: Invalid value: "example.com/foo": duplicate extender managed resource name, extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind]`,
    ],
    [
      'an invalid added affinity',
      'profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "a b", operator: In}]}]}}}}]}]',
      `[profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "a b": ${NAME_PART}, profiles[0].pluginConfig[0].args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty]`,
    ],
    [
      'invalid arguments of every plugin',
      'profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 200}}, {name: DefaultPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}, {name: VolumeBinding, args: {bindTimeoutSeconds: -1, shape: [{utilization: 0, score: 1}]}}, {name: PodTopologySpread, args: {defaultConstraints: [{maxSkew: 0, topologyKey: "a b", whenUnsatisfiable: Foo, labelSelector: {}}, {maxSkew: 1}], defaultingType: Foo}}, {name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu, weight: 2}, {name: cpu}]}}, {name: DynamicResources, args: {filterTimeout: -1s, bindingTimeout: 1ms}}]}]',
      `[profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 200: not in valid range [0, 100], profiles[0].pluginConfig[1].args.minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute, profiles[0].pluginConfig[1].args.minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage, profiles[0].pluginConfig[2].args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value, profiles[0].pluginConfig[2].args.shape: Invalid value: [{"Utilization":0,"Score":1}]: unexpected field \`shape\`, remove it or turn on the feature gate StorageCapacityScoring, profiles[0].pluginConfig[3].args.defaultingType: Unsupported value: "Foo": supported values: "System", "List", profiles[0].pluginConfig[3].args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), profiles[0].pluginConfig[3].args.defaultConstraints[0].topologyKey: Invalid value: "a b": ${NAME_PART}, profiles[0].pluginConfig[3].args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Foo": supported values: "DoNotSchedule", "ScheduleAnyway", profiles[0].pluginConfig[3].args.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod, profiles[0].pluginConfig[3].args.defaultConstraints[1].topologyKey: Required value: can not be empty, profiles[0].pluginConfig[3].args.defaultConstraints[1].whenUnsatisfiable: Required value: can not be empty, profiles[0].pluginConfig[4].args.resources[0].weight: Invalid value: 2: must be 1, profiles[0].pluginConfig[4].args.resources[1].name: Duplicate value: "cpu", profiles[0].pluginConfig[5].args.filterTimeout: Invalid value: "-1s": must be zero or positive, profiles[0].pluginConfig[5].args.bindingTimeout: Invalid value: "1ms": must be at least 1 second]`,
    ],
  ]
  for (const [what, more, message] of wrong) {
    it(`is refused if it has ${what}`, () => {
      assert.equal(problems(more), message)
    })
  }

  it('fails at the creation of the plugin if a scoring strategy is invalid', () => {
    const errors = (args: string): string => {
      const config = load(`profiles: [{pluginConfig: [{name: NodeResourcesFit, args: ${args}}]}]`)
      assert.deepEqual(configurationErrors(config, isEnabled), [])
      const [fit] = config.profiles[0]?.pluginConfig ?? []
      return aggregateText(ARGS.get('NodeResourcesFit')?.errors(fieldPath(''), fit?.args as never, isEnabled) ?? [])
    }
    assert.equal(
      errors('{scoringStrategy: {type: Foo, resources: [{name: cpu, weight: 200}]}}'),
      '[scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio", scoringStrategy.resources[0].weight: Invalid value: 200: resource weight of cpu not in valid range (0, 100]]',
    )
    assert.equal(
      errors(
        '{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 20},{utilization: 40, score: 1},{utilization: 101, score: 1}]}}}',
      ),
      '[scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 40: values must be sorted in increasing order, scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 20: not in valid range [0, 10], scoringStrategy.requestedToCapacityRatio.shape[2].utilization: Invalid value: 101: not in valid range [0, 100]]',
    )
  })

  it('is printed with its defaults, merged with its plugin changes', () => {
    const written = writtenConfiguration(
      load(
        'profiles: [{percentageOfNodesToScore: 5, plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 7}], disabled: [{name: NodeName}]}, score: {disabled: [{name: "*"}], enabled: [{name: NodeAffinity, weight: 4}]}}, pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu}]}}},{name: Foo, args: {a: 1}}]}]\n' +
          'extenders: [{urlPrefix: "http://x", filterVerb: f, httpTimeout: 5s, tlsConfig: {insecure: true}}]',
      ),
    )
    for (const part of [
      'extenders:\n- filterVerb: f\n  httpTimeout: 5s\n  tlsConfig:\n    insecure: true\n  urlPrefix: http://x\nkind:',
      'enableProfiling: true\n',
      '  - args:\n      apiVersion: kubescheduler.config.k8s.io/v1\n      bindingTimeout: 10m0s\n      filterTimeout: 10s\n      kind: DynamicResourcesArgs\n    name: DynamicResources\n',
      '      scoringStrategy:\n        resources:\n        - name: cpu\n          weight: 1\n        type: MostAllocated\n    name: NodeResourcesFit\n',
      '    multiPoint:\n      disabled:\n      - name: NodeName\n        weight: 0\n      enabled:\n      - name: SchedulingGates\n        weight: 0\n',
      '      - name: ImageLocality\n        weight: 7\n      - name: DefaultBinder\n        weight: 0\n      - name: NodeDeclaredFeatures\n        weight: 0\n    permit: {}\n',
      "    score:\n      disabled:\n      - name: '*'\n        weight: 0\n      enabled:\n      - name: NodeAffinity\n        weight: 4\n  schedulerName: default-scheduler\n",
    ]) {
      assert.ok(written.includes(part), `${part}\nis not in\n${written}`)
    }
    assert.ok(!written.includes('Foo'))
  })

  it('is printed in the order of its fields', () => {
    const shown = JSON.stringify(shownConfiguration(load('')))
    assert.ok(
      shown.startsWith(
        '{"kind":"KubeSchedulerConfiguration","apiVersion":"kubescheduler.config.k8s.io/v1","parallelism":16,"leaderElection":{"leaderElect":true,"leaseDuration":"15s","renewDeadline":"10s","retryPeriod":"2s","resourceLock":"leases","resourceName":"kube-scheduler","resourceNamespace":"kube-system"},"clientConnection":{"kubeconfig":"","acceptContentTypes":"","contentType":"application/vnd.kubernetes.protobuf","qps":50,"burst":100},"enableProfiling":true,"enableContentionProfiling":true,"percentageOfNodesToScore":0,"podInitialBackoffSeconds":1,"podMaxBackoffSeconds":10,"profiles":[{"schedulerName":"default-scheduler","plugins":{"preEnqueue":{},"queueSort":{}',
      ),
      shown,
    )
  })
})

describe('plugins of a scheduler profile', () => {
  const pluginsOf = (plugins: string): PluginSets =>
    load(`profiles: [{plugins: ${plugins}}]`).profiles[0]?.plugins ?? {}

  const impossible: readonly (readonly [plugins: string, message: string])[] = [
    ['{multiPoint: {enabled: [{name: Foo}]}}', 'PreFilterPlugin "Foo" does not exist'],
    ['{score: {enabled: [{name: NodeName, weight: 1}]}}', 'plugin "NodeName" does not extend ScorePlugin plugin'],
    [
      '{score: {enabled: [{name: NodeAffinity},{name: NodeAffinity}]}}',
      'plugin "NodeAffinity" already registered as "ScorePlugin"',
    ],
    [
      '{multiPoint: {enabled: [{name: NodeAffinity},{name: NodeAffinity}]}}',
      'plugin "NodeAffinity" already registered as "PreFilterPlugin"',
    ],
  ]
  for (const [plugins, message] of impossible) {
    it(`are rejected if they are ${plugins}`, () => {
      assert.throws(() => expandPoints(pluginsOf(plugins)), { message })
    })
  }

  it('come first at an extension point that names them, and are disabled by "*" unless named', () => {
    const points = expandPoints(
      pluginsOf(
        '{filter: {enabled: [{name: NodePorts}], disabled: [{name: NodeName}]}, score: {enabled: [{name: ImageLocality, weight: 9}], disabled: [{name: "*"}]}}',
      ),
    )
    assert.deepEqual(points.get('filter')?.slice(0, 3), ['NodePorts', 'NodeUnschedulable', 'TaintToleration'])
    assert.deepEqual(points.get('score'), ['ImageLocality'])
    assert.deepEqual(points.get('preScore')?.slice(0, 2), ['TaintToleration', 'NodeAffinity'])
  })

  it('take the weight of the extension point, else of multiPoint, else 1', () => {
    const weights = scoreWeights(pluginsOf('{score: {enabled: [{name: NodeAffinity, weight: 5}]}}'))
    assert.deepEqual(
      ['NodeAffinity', 'TaintToleration', 'VolumeBinding'].map((name) => weights.get(name)),
      [5, 3, 1],
    )
  })
})
