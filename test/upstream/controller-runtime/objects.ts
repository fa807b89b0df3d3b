/** The manifests of the operator that `controller-runtime.ts` tests: its CustomResourceDefinition and its webhooks. */
export const GROUP = 'upstream.example.dev'

/** Of the definition and of both configurations. */
export const NAME: string = `widgets.${GROUP}`

const status = {
  type: 'object',
  properties: {
    replicas: { type: 'integer' },
    conditions: {
      type: 'array',
      items: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    },
  },
}

function schema(spec: object): object {
  return { openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', properties: spec }, status } } }
}

/** Stored in v2; the operator converts, behind a Service. */
export function definition(port: number): object {
  const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.replicas' }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: NAME },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: false,
          schema: schema({ look: { type: 'string' } }),
          subresources: { status: {} },
          additionalPrinterColumns: [{ name: 'Look', type: 'string', jsonPath: '.spec.look' }],
        },
        {
          name: 'v2',
          served: true,
          storage: true,
          schema: schema({ color: { type: 'string' }, size: { type: 'integer' } }),
          subresources: { status: {}, scale },
        },
      ],
      conversion: {
        strategy: 'Webhook',
        webhook: {
          conversionReviewVersions: ['v1'],
          clientConfig: { service: { name: 'widgets', namespace: 'default', path: '/convert', port } },
        },
      },
    },
  }
}

/** Mutating, then validating; each once for what must not pass without it and once, of little patience, for the rest. */
export function configurations(url: string): readonly object[] {
  const path = `${GROUP.replaceAll('.', '-')}-v2-widget`
  return [
    ['mutate', ['CREATE', 'UPDATE']],
    ['validate', ['CREATE', 'UPDATE', 'DELETE']],
  ].map(([verb, operations]) => {
    const hook = {
      clientConfig: { url: `${url}/${verb as string}-${path}` },
      rules: [{ apiGroups: [GROUP], apiVersions: ['v2'], operations, resources: ['widgets'] }],
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      timeoutSeconds: 1,
    }
    const soft = (operator: string): object => ({ matchExpressions: [{ key: 'soft', operator }] })
    return {
      metadata: { name: NAME },
      webhooks: [
        { ...hook, name: `firm.${NAME}`, failurePolicy: 'Fail', objectSelector: soft('DoesNotExist') },
        { ...hook, name: `soft.${NAME}`, failurePolicy: 'Ignore', objectSelector: soft('Exists') },
      ],
    }
  })
}
