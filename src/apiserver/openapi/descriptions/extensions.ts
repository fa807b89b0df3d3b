/** admissionregistration and apiextensions: who has a say in requests, and kinds that users define. */
import type { DescriptionTable } from './table.ts'

const failurePolicy = 'What to do when it cannot be asked or fails: Fail (the default) or Ignore.'
const matchConditions = 'Expressions that must all be true, or it is not asked.'
const paramKind = 'The kind of the objects that its parameters are in.'
const paramRef = 'The objects with the parameters.'
const matchConstraints = 'Which requests it is about.'
const variables = 'Values to be used in later expressions as variables.NAME.'
const matchResources = 'Narrows further which requests it is about.'
const reinvocationPolicy =
  'Whether it is asked again when others change the object after it: Never (the default) or IfNeeded.'
const policyName = 'The policy.'
const url = 'Where, as a URL. One of url and service is set.'
const service = 'Where, as a Service of the cluster.'
const caBundle = 'Certificates its own is checked against, in PEM, as base64. Default: those of the system.'
const webhook = {
  name: 'Names it, as a full domain name.',
  clientConfig: 'Where it is.',
  rules: 'Which requests it is asked about.',
  failurePolicy,
  matchPolicy: 'Exact, or Equivalent (the default): also requests in other versions.',
  namespaceSelector: 'Only objects in namespaces with such labels.',
  objectSelector: 'Only objects with such labels.',
  sideEffects: 'Whether it does anything besides answering: None, or NoneOnDryRun.',
  timeoutSeconds: 'How long to wait, from 1 to 30. Default: 10.',
  admissionReviewVersions: 'Versions of AdmissionReview it understands, best first.',
  matchConditions,
}
const rule = {
  operations: 'CREATE, UPDATE, DELETE, CONNECT or * for all.',
  apiGroups: 'Groups; * for all.',
  apiVersions: 'Versions; * for all.',
  resources: 'Resources; pods/* for all parts of pods, * for all resources.',
  scope: 'Cluster, Namespaced or * (the default).',
}

export const admissionRegistration: DescriptionTable = {
  MutatingWebhookConfiguration: {
    '': 'Web servers that are asked about requests and may change the objects.',
    webhooks: 'The servers.',
  },
  ValidatingWebhookConfiguration: {
    '': 'Web servers that are asked about requests and may refuse them.',
    webhooks: 'The servers.',
  },
  MutatingWebhook: { '': 'A server that may change objects.', ...webhook, reinvocationPolicy },
  ValidatingWebhook: { '': 'A server that may refuse requests.', ...webhook },
  WebhookClientConfig: { '': 'Where a webhook is.', url, service, caBundle },
  ServiceReference: {
    '': 'Points to a Service.',
    namespace: 'Its namespace.',
    name: 'Its name.',
    path: 'The path to ask for.',
    port: 'The port. Default: 443.',
  },
  RuleWithOperations: { '': 'Some requests.', ...rule },
  NamedRuleWithOperations: {
    '': 'Some requests, perhaps only for some names.',
    ...rule,
    resourceNames: 'Only these names. Empty: all.',
  },
  MatchResources: {
    '': 'Some requests. Everything in it must fit.',
    namespaceSelector: 'Only objects in namespaces with such labels.',
    objectSelector: 'Only objects with such labels.',
    resourceRules: 'Only such requests.',
    excludeResourceRules: 'But not such.',
    matchPolicy: 'Exact, or Equivalent (the default): also requests in other versions.',
  },
  MatchCondition: { '': 'An expression that must be true.', name: 'Names it.', expression: 'The expression, in CEL.' },
  ParamKind: { '': 'The kind of parameters.', apiVersion: 'Its API version.', kind: 'The kind.' },
  ParamRef: {
    '': 'Objects with parameters, by name or labels.',
    name: 'One object.',
    namespace: 'In which namespace. Empty: in that of the object in question.',
    selector: 'All objects with such labels.',
    parameterNotFoundAction: 'When there is none: Allow or Deny.',
  },
  Variable: { '': 'A value to be used in later expressions.', name: 'Its name.', expression: 'The value, in CEL.' },
  ValidatingAdmissionPolicy: {
    '': 'Expressions that requests must satisfy, checked by the server itself. A binding puts it into force.',
  },
  ValidatingAdmissionPolicySpec: {
    '': 'What is demanded, of which requests.',
    paramKind,
    matchConstraints,
    validations: 'What must be true.',
    failurePolicy,
    auditAnnotations: 'What to note in the audit log.',
    matchConditions,
    variables,
  },
  Validation: {
    '': 'Something that must be true.',
    expression: 'The expression, in CEL.',
    message: 'What to say when it is not.',
    messageExpression: 'The same, as an expression; wins over message.',
    reason: 'What to say to programs. Default: Invalid.',
  },
  AuditAnnotation: {
    '': 'Something to note in the audit log.',
    key: 'Its key.',
    valueExpression: 'Its value, in CEL; null for none.',
  },
  ValidatingAdmissionPolicyStatus: {
    '': 'What the server thinks of a policy.',
    typeChecking: 'Expressions that do not fit the types.',
  },
  TypeChecking: { '': 'What is odd about the expressions of a policy.', expressionWarnings: 'One entry for each.' },
  ExpressionWarning: { '': 'What is odd about an expression.', fieldRef: 'Where it is.', warning: 'What is odd.' },
  ValidatingAdmissionPolicyBinding: { '': 'Puts a ValidatingAdmissionPolicy into force.' },
  ValidatingAdmissionPolicyBindingSpec: {
    '': 'Which policy, with which parameters, for what.',
    policyName,
    paramRef,
    matchResources,
    validationActions: 'What follows: Deny, Warn, Audit. Not Deny and Warn together.',
  },
  MutatingAdmissionPolicy: { '': 'Changes to objects, made by the server itself. A binding puts it into force.' },
  MutatingAdmissionPolicySpec: {
    '': 'What is changed, in which requests.',
    paramKind,
    matchConstraints,
    variables,
    mutations: 'The changes, one after the other.',
    failurePolicy,
    matchConditions,
    reinvocationPolicy,
  },
  Mutation: {
    '': 'A change.',
    patchType: 'ApplyConfiguration or JSONPatch; the member of that name is set.',
    applyConfiguration: 'An object to be merged, as server-side apply does.',
    jsonPatch: 'Operations as RFC 6902 has them.',
  },
  ApplyConfiguration: { '': 'An object to be merged.', expression: 'The object, in CEL.' },
  JSONPatch: { '': 'A list of operations.', expression: 'The list, in CEL.' },
  MutatingAdmissionPolicyBinding: { '': 'Puts a MutatingAdmissionPolicy into force.' },
  MutatingAdmissionPolicyBindingSpec: {
    '': 'Which policy, with which parameters, for what.',
    policyName,
    paramRef,
    matchResources,
  },
}

export const apiExtensions: DescriptionTable = {
  CustomResourceDefinition: { '': 'Defines a kind that the API then serves like any other.' },
  CustomResourceDefinitionSpec: {
    '': 'The kind and its versions.',
    group: 'Its group. Cannot be changed.',
    names: 'What it is called.',
    scope: 'Namespaced or Cluster. Cannot be changed.',
    versions: 'Its versions.',
    conversion: 'How objects get from one version to another.',
    preserveUnknownFields: 'Must be false.',
  },
  CustomResourceDefinitionNames: {
    '': 'What a kind is called.',
    plural: 'The resource, as paths have it. The definition is called plural.group.',
    singular: 'The singular. Default: the kind in lower case.',
    shortNames: 'Shorter names for kubectl.',
    kind: 'The kind.',
    listKind: 'The kind of lists. Default: the kind with List behind it.',
    categories: 'Sets of resources it belongs to, such as all.',
  },
  CustomResourceDefinitionVersion: {
    '': 'A version of a kind.',
    name: 'The version, such as v1.',
    served: 'Whether it is served.',
    storage: 'Whether objects are stored in it. Exactly one is.',
    deprecated: 'Whether clients are warned.',
    deprecationWarning: 'With which words.',
    schema: 'What objects look like.',
    subresources: 'Parts that are written separately.',
    additionalPrinterColumns: 'What kubectl get shows.',
    selectableFields: 'Fields that objects can be selected by.',
  },
  CustomResourceDefinitionStatus: {
    '': 'How a definition fares.',
    acceptedNames: 'The names it got.',
    storedVersions: 'All versions that objects were ever stored in.',
  },
  CustomResourceValidation: { '': 'The form of objects.', openAPIV3Schema: 'The schema.' },
  CustomResourceSubresources: {
    '': 'Which parts are written separately.',
    status: 'Have a status that only its own path changes.',
    scale: 'Have a number of replicas that kubectl scale and autoscalers change.',
  },
  CustomResourceSubresourceStatus: { '': 'A status that only its own path changes.' },
  CustomResourceSubresourceScale: {
    '': 'Where the number of replicas is.',
    specReplicasPath: 'The number that is wanted, below .spec.',
    statusReplicasPath: 'The number there is, below .status.',
    labelSelectorPath: 'The labels of the pods as text, below .status or .spec.',
  },
  CustomResourceColumnDefinition: {
    '': 'A column of kubectl get.',
    name: 'Its heading.',
    type: 'One of integer, number, string, boolean and date.',
    format: 'A hint for display, such as int64.',
    description: 'What it shows.',
    priority: 'Above 0: only with -o wide.',
    jsonPath: 'Where the value is.',
  },
  SelectableField: { '': 'A field that objects can be selected by.', jsonPath: 'Where it is.' },
  CustomResourceConversion: {
    '': 'Who converts objects.',
    strategy: 'None: only the apiVersion changes. Webhook: a web server does it.',
    webhook: 'The server.',
  },
  WebhookConversion: {
    '': 'A server that converts.',
    clientConfig: 'Where it is.',
    conversionReviewVersions: 'Versions of ConversionReview it understands, best first.',
  },
  WebhookClientConfig: { '': 'Where a webhook is.', url, service, caBundle },
  ServiceReference: {
    '': 'Points to a Service.',
    namespace: 'Its namespace.',
    name: 'Its name.',
    path: 'The path to ask for.',
    port: 'The port. Default: 443.',
  },
  JSONSchemaProps: {
    '': 'A JSON schema, in the form that OpenAPI 3 knows.',
    description: 'What kubectl explain says.',
    type: 'One of object, array, string, integer, number and boolean.',
    format: 'More about the type, such as int64 or date-time.',
    default: 'The value where none is given.',
    enum: 'The only values there are.',
    required: 'Fields that must be there.',
    properties: 'The fields, by name.',
    additionalProperties: 'Of what form the values of a map are.',
    items: 'Of what form the items of a list are.',
    nullable: 'Whether null is a value.',
    'x-kubernetes-preserve-unknown-fields': 'Keep fields that the schema does not know.',
    'x-kubernetes-embedded-resource': 'Whether this is an object with apiVersion, kind and metadata.',
    'x-kubernetes-int-or-string': 'Whether it is a number or a text.',
    'x-kubernetes-list-type': 'How apply merges a list: atomic, set or map.',
    'x-kubernetes-list-map-keys': 'For map: the fields that tell items apart.',
    'x-kubernetes-map-type': 'How apply merges an object: granular or atomic.',
    'x-kubernetes-validations': 'Expressions that must be true.',
  },
  ValidationRule: {
    '': 'Something that must be true.',
    rule: 'The expression, in CEL; self is the value.',
    message: 'What to say when it is not.',
    messageExpression: 'The same, as an expression; wins over message.',
    reason: 'What to say to programs.',
    fieldPath: 'Which field is to blame.',
    optionalOldSelf: 'Also judge new values, with oldSelf being optional.',
  },
}
