/**
 * The kustomizations of the comparison: each is a folder, as a table of files by name. Some share files, such as
 * `BASE`.
 */

export type Case = Readonly<Record<string, string>>

const BASE = `resources: [all.yaml]
`

const ALL = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      serviceAccountName: runner
      imagePullSecrets: [{name: token}]
      initContainers:
      - {name: init, image: "busybox:1"}
      containers:
      - name: web
        image: nginx:1.25
        args: [--host=$(HOST), $$literal]
        env:
        - {name: A, value: "1"}
        - {name: B, valueFrom: {configMapKeyRef: {name: settings, key: b}}}
        envFrom: [{secretRef: {name: token}}]
        ports: [{containerPort: 80, protocol: TCP}, {containerPort: 443}]
        volumeMounts: [{name: v, mountPath: /v}]
      - name: side
        image: registry.example.com:5000/team/side@sha256:24a0c4b4
      volumes:
      - {name: v, configMap: {name: settings}}
      - {name: d, persistentVolumeClaim: {claimName: data}}
---
apiVersion: v1
kind: Service
metadata: {name: web, annotations: {a: b}}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, creationTimestamp: null}
data: {b: "yes", c: "on"}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [settings], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: runner}, {kind: ServiceAccount, name: default, namespace: x}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: web
  selector: {matchLabels: {app: db}}
  template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: postgres}]}}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: busybox}]}}}}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: a, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}], tls: [{secretName: token}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: thing}
spec: {size: 3, items: [{name: a, v: 1}, {name: b, v: 2}], template: {spec: {containers: [{name: x, image: "nginx:1"}]}}, on: yes, date: "2020-01-01"}
`

/** An overlay over all of it. */
function over(text: string, files: Case = {}): Case {
  return {
    'kustomization.yaml': `resources: [base]\n${text}`,
    'base/kustomization.yaml': BASE,
    'base/all.yaml': ALL,
    ...files,
  }
}

/** One kustomization beside its resources. */
function plain(text: string, files: Case = {}): Case {
  return { 'kustomization.yaml': `resources: [all.yaml]\n${text}`, 'all.yaml': ALL, ...files }
}

const DEPLOYMENT = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n'

const PATCHES: readonly string[] = [
  'spec: {replicas: 5}',
  'spec: {replicas: null}',
  'spec: {template: {spec: {containers: [{name: side, image: new}]}}}',
  'spec: {template: {spec: {containers: [{name: third, image: new}, {name: web, env: [{name: A, value: "2"}, {name: Z, value: z}]}]}}}',
  'spec: {template: {spec: {containers: [{name: side, $patch: delete}]}}}',
  'spec: {template: {spec: {containers: [{$patch: replace}, {name: only, image: x}]}}}',
  'spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 80, name: http}]}]}}}',
  'spec: {template: {spec: {containers: [{name: web, ports: [{containerPort: 8080}]}]}}}',
  'spec: {template: {spec: {containers: [{name: web, args: [one]}]}}}',
  'spec: {template: {spec: {containers: [{name: web, env: [{name: A, $patch: delete}]}]}}}',
  'spec: {template: {spec: {volumes: [{name: v, emptyDir: {}, configMap: null}]}}}',
  'spec: {template: {spec: {$patch: replace, containers: [{name: x, image: y}]}}}',
  'spec: {template: {spec: {initContainers: null}}}',
  'spec: {template: {spec: {tolerations: [{key: a, operator: Exists}], nodeSelector: {a: b}}}}',
  'spec: {strategy: {$patch: delete}}',
  '$patch: delete',
  'spec: {selector: {matchLabels: {x: y}}}',
]

const JSON_PATCHES: readonly string[] = [
  '[{op: replace, path: /spec/replicas, value: 7}]',
  '[{op: add, path: /spec/template/spec/containers/-, value: {name: n, image: i}}]',
  '[{op: remove, path: /spec/template/spec/containers/1}]',
  '[{op: add, path: /metadata/annotations, value: {a~1b: c}}]',
  '[{op: add, path: /metadata/labels/x~1y, value: z}]',
  '[{op: test, path: /spec/replicas, value: 1}, {op: copy, from: /metadata/labels, path: /metadata/annotations}]',
  '[{op: move, from: /metadata/labels/app, path: /metadata/labels/moved}]',
  '[{op: replace, path: /metadata/name, value: other}]',
  '[{op: remove, path: /spec/nope}]',
]

const LINES: readonly string[] = [
  'namePrefix: a-',
  'nameSuffix: -z',
  'namePrefix: a-\nnameSuffix: -z',
  'namespace: other',
  'namespace: other\nnamePrefix: p-',
  'commonLabels: {team: blue, number: "1"}',
  'labels: [{pairs: {team: blue}}]',
  'labels: [{pairs: {team: blue}, includeSelectors: true}]',
  'labels: [{pairs: {team: blue}, includeTemplates: true}]',
  'labels: [{pairs: {team: blue}, fields: [{path: spec/extra, create: true, kind: Widget}]}, {pairs: {z: "yes"}}]',
  'commonAnnotations: {note: "on", other: text}',
  'images: [{name: nginx, newTag: "2"}]',
  'images: [{name: nginx, newName: httpd}]',
  'images: [{name: nginx, newName: httpd, newTag: x, digest: "sha256:abc"}]',
  'images: [{name: nginx, digest: "sha256:abc"}, {name: busybox, newTag: "9"}]',
  'images: [{name: "registry.example.com:5000/team/side", newTag: v2}]',
  'images: [{name: nginx, tagSuffix: -slim}, {name: postgres, newName: mirror/postgres}]',
  'images: [{name: nope, newTag: "2"}]',
  'replicas: [{name: web, count: 9}, {name: db, count: 0}]',
  'replicas: [{name: nope, count: 9}]',
  'sortOptions: {order: fifo}',
  'sortOptions: {order: legacy}',
  'sortOptions: {order: legacy, legacySortOptions: {orderFirst: [Service], orderLast: [Deployment]}}',
  'sortOptions: {order: other}',
  'sortOptions: {order: fifo, legacySortOptions: {orderFirst: [Service]}}',
  'configMapGenerator: [{name: made, literals: [a=b, "c=\'d\'", "e=f=g"]}]',
  'configMapGenerator: [{name: made, literals: [a=b], options: {disableNameSuffixHash: true, labels: {l: m}, annotations: {one: two}, immutable: true}}]',
  'configMapGenerator: [{name: made, literals: [a=b]}]\ngeneratorOptions: {labels: {l: m}, disableNameSuffixHash: true}',
  'configMapGenerator: [{name: made, literals: [a=b], options: {labels: {l: own}}}]\ngeneratorOptions: {labels: {l: m, k: j}, annotations: {three: four}, immutable: true}',
  'configMapGenerator: [{name: settings, behavior: merge, literals: [b=new, d=e]}]',
  'configMapGenerator: [{name: settings, behavior: replace, literals: [d=e]}]',
  'configMapGenerator: [{name: settings, behavior: create, literals: [d=e]}]',
  'configMapGenerator: [{name: settings, literals: [d=e]}]',
  'configMapGenerator: [{name: nope, behavior: merge, literals: [d=e]}]',
  'configMapGenerator: [{name: made}]',
  'configMapGenerator: [{literals: [a=b]}]',
  'configMapGenerator: [{name: made, literals: [novalue]}]',
  'configMapGenerator: [{name: made, literals: [a=b, a=c]}]',
  'configMapGenerator: [{name: made, literals: ["a b=c"]}]',
  'secretGenerator: [{name: token, literals: [user=me, password=very-long-password-that-goes-over-more-than-one-line-of-base64-text]}]',
  'secretGenerator: [{name: token, type: kubernetes.io/basic-auth, literals: [username=a, password=b]}]\nnamePrefix: p-',
  'secretGenerator: [{name: token, namespace: elsewhere, literals: [a=<&>]}]',
  'namespace: other\nsecretGenerator: [{name: token, literals: [a=b]}]\nconfigMapGenerator: [{name: settings, behavior: merge, literals: [z=z]}]',
  'buildMetadata: [managedByLabel]',
  'nope: 1',
  'namePrefix: 3',
  'resources: x',
  'kind: Other',
  'apiVersion: v9',
  'NAMEPREFIX: x-',
  'bases: []',
  'namespace: shop\ncommonLabels: {a: b}\nimages: [{name: nginx, newTag: t}]\nreplicas: [{name: web, count: 2}]',
  'replacements: [{source: {kind: Service, name: web}, targets: [{select: {kind: Deployment, name: web}, fieldPaths: [metadata.annotations.svc], options: {create: true}}]}]',
  'replacements: [{source: {kind: Deployment, name: web, fieldPath: "spec.template.spec.containers.[name=web].image", options: {delimiter: ":", index: 1}}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b]}]}]',
  'replacements: [{source: {kind: ConfigMap, name: settings, fieldPath: data.b}, targets: [{select: {kind: Deployment}, fieldPaths: ["spec.template.spec.containers.[name=side].image"], options: {delimiter: "/", index: 1}}]}]',
  'replacements: [{source: {kind: Deployment, name: web, fieldPath: spec.replicas}, targets: [{select: {kind: HorizontalPodAutoscaler}, fieldPaths: [spec.maxReplicas]}]}]',
  'replacements: [{source: {kind: Deployment, name: web, fieldPath: spec.selector}, targets: [{select: {kind: Widget}, fieldPaths: [spec.selector], options: {create: true}}]}]',
  'replacements: [{source: {kind: Nope, name: web}, targets: [{select: {kind: Deployment}}]}]',
  'replacements: [{source: {kind: Service, name: web, fieldPath: spec.nope}, targets: [{select: {kind: Deployment}}]}]',
  'replacements: [{source: {kind: Service, name: web}, targets: [{select: {kind: Deployment}, fieldPaths: [spec.nope]}]}]',
  'replacements: [{source: {kind: Service}, targets: [{select: {kind: Widget}, fieldPaths: ["spec.items.*.name"], reject: [{name: other}]}]}]',
  'replacements: [{sourceValue: "42", targets: [{select: {kind: Widget}, fieldPaths: [spec.size, "spec.items.0.v"]}]}]',
  'vars: [{name: HOST, objref: {kind: Service, name: web, apiVersion: v1}, fieldref: {fieldpath: metadata.name}}]\nnamePrefix: v-',
  'vars: [{name: HOST, objref: {kind: Service, name: nope, apiVersion: v1}}]',
  'vars: [{name: UNUSED, objref: {kind: Service, name: web, apiVersion: v1}}]',
  'helmCharts: [{name: x}]',
]

function targeted(selector: string, patch: string): string {
  return `patches:\n- target: ${selector}\n  patch: |-\n    ${patch.replaceAll('\n', '\n    ')}\n`
}

const TARGETS: readonly string[] = [
  '{kind: Deployment}',
  '{name: web}',
  '{name: w.*}',
  '{kind: Deployment|StatefulSet}',
  '{labelSelector: app=web}',
  '{annotationSelector: a=b}',
  '{group: apps, version: v1}',
  '{namespace: default, kind: Service}',
  '{kind: Nope}',
]

/** Upstream parses a text that begins with a bracket as JSON. */
function inBlock(patch: string): string {
  return `- ${patch.slice(1, -1).replaceAll('}, {op', '}\n- {op')}`
}

export const CASES: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(LINES.map((line) => [`plain ${line}`, plain(line)])),
  ...Object.fromEntries(LINES.slice(0, 20).map((line) => [`over ${line}`, over(line)])),
  ...Object.fromEntries(
    PATCHES.map((patch) => [
      `patch ${patch}`,
      over(`patches: [{path: p.yaml}]`, { 'p.yaml': `${DEPLOYMENT}${patch}\n` }),
    ]),
  ),
  ...Object.fromEntries(
    JSON_PATCHES.map((patch) => [`json ${patch}`, over(targeted('{kind: Deployment, name: web}', inBlock(patch)))]),
  ),
  ...Object.fromEntries(
    TARGETS.flatMap((target) => [
      [`target ${target}`, plain(targeted(target, 'kind: any\nmetadata: {name: any, annotations: {hit: "1"}}'))],
      [
        `json target ${target}`,
        over(`namePrefix: q-\n${targeted(target, '- {op: add, path: /metadata/finalizers, value: [f]}')}`),
      ],
    ]),
  ),
  'two levels': {
    'kustomization.yaml':
      'resources: [middle]\nnamePrefix: top-\nnamespace: top\nconfigMapGenerator: [{name: made, behavior: merge, literals: [b=2]}]\n',
    'middle/kustomization.yaml': 'resources: [../base]\nnamePrefix: mid-\nnameSuffix: -end\n',
    'base/kustomization.yaml': 'resources: [all.yaml]\nconfigMapGenerator: [{name: made, literals: [a=1]}]\n',
    'base/all.yaml': ALL,
  },
  'two bases of one': {
    'kustomization.yaml': 'resources: [one, two]\n',
    'one/kustomization.yaml': 'resources: [../base]\nnamePrefix: one-\n',
    'two/kustomization.yaml': 'resources: [../base]\nnamePrefix: two-\n',
    'base/kustomization.yaml': 'resources: [all.yaml]\n',
    'base/all.yaml': ALL.split('---\n')
      .filter((text) => !text.includes('kind: Namespace'))
      .join('---\n'),
  },
  component: {
    'kustomization.yaml': 'resources: [all.yaml]\ncomponents: [part]\nnamePrefix: p-\n',
    'part/kustomization.yaml':
      'apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {from: part}}]\nconfigMapGenerator: [{name: extra, literals: [x=y]}]\n',
    'all.yaml': ALL,
  },
  'component that is none': {
    'kustomization.yaml': 'components: [part]\n',
    'part/kustomization.yaml': 'namePrefix: a-\n',
  },
  files: over(
    'configMapGenerator: [{name: f, files: [a.txt, other=b.bin], envs: [e.env]}]\nsecretGenerator: [{name: s, files: [a.txt], env: e.env}]',
    {
      'a.txt': 'one\ntwo  \n',
      'b.bin': 'text\n',
      'e.env': '# comment\nA=1\n\n  B=x=y\nC\n',
    },
  ),
  'env of bad name': over('configMapGenerator: [{name: f, envs: [e.env]}]', { 'e.env': '1A=1\n' }),
  'missing file': { 'kustomization.yaml': 'resources: [nope.yaml]\n' },
  'missing patch': over('patches: [{path: nope.yaml}]'),
  'missing env': over('configMapGenerator: [{name: f, envs: [nope.env]}]'),
  malformed: { 'kustomization.yaml': 'resources: [a.yaml]\n', 'a.yaml': 'a: b: c\n' },
  'no name': { 'kustomization.yaml': 'resources: [a.yaml]\n', 'a.yaml': 'apiVersion: v1\nkind: ConfigMap\n' },
  'no kind': { 'kustomization.yaml': 'resources: [a.yaml]\n', 'a.yaml': 'metadata: {name: x}\n' },
  twice: {
    'kustomization.yaml': 'resources: [a.yaml, b.yaml]\n',
    'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n',
    'b.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n',
  },
  cycle: { 'kustomization.yaml': 'resources: [a]\n', 'a/kustomization.yaml': 'resources: [..]\n' },
  outside: {
    'kustomization.yaml': 'resources: [a]\n',
    'a/kustomization.yaml': 'resources: [../x.yaml]\n',
    'x.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n',
  },
  empty: { 'kustomization.yaml': '' },
  nothing: { 'other.yaml': '' },
  'two files': { 'kustomization.yaml': 'namePrefix: a\n', 'kustomization.yml': 'namePrefix: b\n' },
  list: {
    'kustomization.yaml': 'resources: [a.yaml]\n',
    'a.yaml':
      'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}\n- {apiVersion: v1, kind: Secret, metadata: {name: y}}\n',
  },
  'local config': {
    'kustomization.yaml': 'resources: [a.yaml]\n',
    'a.yaml':
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, annotations: {config.kubernetes.io/local-config: "true"}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n',
  },
  'strategic merges': over(
    'patchesStrategicMerge: [p.yaml, "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: NodePort}}"]',
    { 'p.yaml': `${DEPLOYMENT}spec: {replicas: 4}\n` },
  ),
  'json 6902': over(
    'patchesJson6902: [{target: {group: apps, version: v1, kind: Deployment, name: web}, path: p.json}]',
    { 'p.json': '[{"op": "replace", "path": "/spec/replicas", "value": 8}]' },
  ),
  'patch of nobody': over('patches: [{path: p.yaml}]', {
    'p.yaml': 'apiVersion: v1\nkind: Service\nmetadata: {name: nope}\n',
  }),
  'patch of a widget': over('patches: [{path: p.yaml}]', {
    'p.yaml':
      'apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: thing}\nspec: {items: [{name: b, v: 3}], on: null}\n',
  }),
  'patch that renames': over(
    'patches: [{path: p.yaml, target: {kind: Deployment, name: web}, options: {allowNameChange: true}}]',
    { 'p.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: renamed}\n' },
  ),
  configuration: over('configurations: [c.yaml]\nnamePrefix: c-\ncommonLabels: {l: m}', {
    'c.yaml':
      'nameReference:\n- {kind: ConfigMap, version: v1, fieldSpecs: [{kind: Widget, path: spec/on}]}\ncommonLabels:\n- {path: spec/labels, create: true, kind: Widget}\nimages:\n- {path: spec/picture, kind: Widget}\n',
  }),
  'replacement file': over('replacements: [{path: r.yaml}]', {
    'r.yaml': 'source: {kind: Service, name: web}\ntargets:\n- select: {kind: Widget}\n  fieldPaths: [spec.size]\n',
  }),
}
