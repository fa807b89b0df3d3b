/** Small forms that write the YAML of common kinds. */
import { toYaml } from './yaml-text.ts'

export interface TemplateField {
  readonly name: string
  readonly label: string
  readonly value: string
  readonly isOptional?: boolean
}

export interface Template {
  readonly kind: string
  readonly fields: readonly TemplateField[]
  readonly write: (fields: Readonly<Record<string, string>>, namespace: string) => object
}

const NAME: TemplateField = { name: 'name', label: 'Name', value: '' }

export const TEMPLATES: readonly Template[] = [
  {
    kind: 'Deployment',
    fields: [
      NAME,
      { name: 'image', label: 'Image', value: '' },
      { name: 'replicas', label: 'Replicas', value: '1' },
      { name: 'port', label: 'Port of the container', value: '', isOptional: true },
    ],
    write: ({ name = '', image = '', replicas = '1', port = '' }, namespace) => ({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace, labels: { app: name } },
      spec: {
        replicas: numberOr(replicas),
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { containers: [{ name, image, ...(port !== '' && { ports: [{ containerPort: numberOr(port) }] }) }] },
        },
      },
    }),
  },
  {
    kind: 'Service',
    fields: [
      NAME,
      { name: 'app', label: 'Pods with label app', value: '' },
      { name: 'port', label: 'Port', value: '80' },
      { name: 'target', label: 'Port of the pods', value: '', isOptional: true },
    ],
    write: ({ name = '', app = '', port = '80', target = '' }, namespace) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: {
        selector: { app },
        ports: [{ port: numberOr(port), ...(target !== '' && { targetPort: numberOr(target) }) }],
      },
    }),
  },
  {
    kind: 'ConfigMap',
    fields: [
      NAME,
      { name: 'key', label: 'Key', value: '' },
      { name: 'value', label: 'Value', value: '', isOptional: true },
    ],
    write: ({ name = '', key = '', value = '' }, namespace) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data: { [key]: value },
    }),
  },
  {
    kind: 'Secret',
    fields: [
      NAME,
      { name: 'key', label: 'Key', value: '' },
      { name: 'value', label: 'Value', value: '', isOptional: true },
    ],
    write: ({ name = '', key = '', value = '' }, namespace) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace },
      type: 'Opaque',
      stringData: { [key]: value },
    }),
  },
  {
    kind: 'Namespace',
    fields: [NAME],
    write: ({ name = '' }) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
  },
]

/** A text that is no number stays: the schema marks it. */
function numberOr(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text
}

/** Adds a document to a text of YAML. */
export function appendDocument(text: string, object: object): string {
  const before = text.trim()
  return before === '' ? toYaml(object) : `${before}\n---\n${toYaml(object)}`
}
