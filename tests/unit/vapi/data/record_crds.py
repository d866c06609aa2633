#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records what a real kube-apiserver says of custom resources and of CRDs, for test_crd_validate.c and
test_crd_checks.c.

    PYTHONPATH=tests record_crds.py KUBECONFIG FOLDER

Writes crd_objects.jsonl (the first line is the schema) and crd_schemas.jsonl. Everything but one CRD, which is removed
at the end, is a dry run. It must only be run against a cluster made for tests."""
import copy
import json
import sys
import time

from testenv.api import Api

G = "tests2.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def S(**k):
    return dict(type="string", **k)


def I(**k):
    return dict(type="integer", **k)


def O(p, **k):
    return dict(type="object", properties=p, **k)


def L(i, **k):
    return dict(type="array", items=i, **k)


def x(d, **k):
    d.update({"x-kubernetes-" + a.replace("_", "-"): b for a, b in k.items()})
    return d


def crd(schema, **kw):
    v = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    v.update(kw.pop("version", {}))
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "probes." + G},
            "spec": dict({"group": G, "scope": "Cluster", "names": {"plural": "probes", "kind": "Probe"},
                          "versions": [v]}, **kw)}


def causes(status):
    return [[q.get("reason"), q.get("field"), q["message"][:1500]] for q in (status.get("details") or {}).get("causes", [])]


# fmt: off
spec=O({
 'str':S(minLength=2,maxLength=4,pattern='^[a-z]+$'),
 'int':I(minimum=2,maximum=10), 'ex':I(minimum=2,maximum=10,exclusiveMinimum=True,exclusiveMaximum=True),
 'num':{'type':'number','minimum':0.5,'maximum':1000000,'multipleOf':0.25},
 'm3':I(multipleOf=3),
 'i32':I(format='int32'),'i64':I(format='int64'),'f':{'type':'number','format':'float'},
 'bool':{'type':'boolean'}, 'en':S(enum=['a','b']), 'eni':I(enum=[1,2]),
 'list':L(I(),minItems=1,maxItems=2),'obj':O({'a':I(),'b':S()},required=['b'],minProperties=1,maxProperties=2),
 'map':{'type':'object','additionalProperties':I(),'maxProperties':2},
 'nul':S(nullable=True),'ios':x({},int_or_string=True),
 'set':x(L(S()),list_type='set'), 'seti':x(L({'type':'number'}),list_type='set'),
 'lm':x(L(O({'k':S(),'v':I()},required=['k'])),list_type='map',list_map_keys=['k']),
 'lm2':x(L(O({'k':S(),'p':I(default=1),'v':I()},required=['k'])),list_type='map',list_map_keys=['k','p']),
 'any':O({'a':I(),'b':I()},anyOf=[{'required':['a']},{'required':['b']}]),
 'one':O({'a':I(),'b':I()},oneOf=[{'required':['a']},{'required':['b']}]),
 'all':I(allOf=[{'minimum':3},{'maximum':5}]),
 'not':{'type':'string','not':{'pattern':'^x'}},
 'pre':x({'type':'object'},preserve_unknown_fields=True),
 'pre2':x(O({'known':O({'a':I()})}),preserve_unknown_fields=True),
 'prelist':x(L(O({'a':I()})),preserve_unknown_fields=True),
 'emb':x({'type':'object'},embedded_resource=True,preserve_unknown_fields=True),
 'emb2':x(O({'spec':O({'a':I()})}),embedded_resource=True),
 'def':O({'s':S(default='x'),'n':S(default='y',nullable=True),'o':O({'i':I(default=7)},default={}),'p':O({'i':I(default=7)})}),
 'dlist':L(O({'i':I(default=7)})), 'dmap':{'type':'object','additionalProperties':O({'i':I(default=7)})},
 'nn':S(), 'mapnn':{'type':'object','additionalProperties':S()},
 'listnn':L(S()), 'mapdef':{'type':'object','additionalProperties':S(default='z')}, 'listdef':L(S(default='z')),
 'sub':O({}), 'objn':{'type':'object'},
 **{('fmt_'+f).replace('-','_'):S(format=f) for f in ['byte','date','date-time','datetime','duration','ipv4','ipv6','cidr','uri','email','uuid','uuid4','hostname','mac','password','bsonobjectid','isbn','creditcard','ssn','hexcolor','rgbcolor','k8s-short-name','k8s-long-name','int32']},
})


def objects(t):
    for s in [{'str':'a'},{'str':'abcde'},{'str':'AB'},{'str':5},{'str':None},{'int':1},{'int':11},{'int':1.5},{'int':3.0},{'int':'x'},{'ex':2},{'ex':10},
     {'num':0.25},{'num':1000001},{'num':1.1},{'num':'x'},{'m3':4},{'i32':3000000000},{'i64':9223372036854775807},{'int':9223372036854775808},{'f':1e300},
     {'bool':'true'},{'bool':1},{'en':'c'},{'en':5},{'eni':3},{'eni':1.0},{'list':[]},{'list':[1,2,3]},{'list':['x']},{'list':{}},{'obj':{}},{'obj':{'a':'x'}},{'obj':[]},{'obj':{'a':1,'b':'x','c':3}},
     {'map':{'a':'x'}},{'map':{'a.b':'x'}},{'map':{'a':1,'b':2,'c':3}},{'nul':None},{'nn':None},{'mapnn':{'a':None}},{'listnn':[None]},{'mapdef':{'a':None}},{'listdef':[None]},
     {'ios':1},{'ios':'x'},{'ios':1.5},{'ios':True},{'ios':None},{'set':['a','b','a','a']},{'seti':[1,1.0]},{'lm':[{'k':'a'},{'k':'a'}]},{'lm':[{}]},{'lm':['x']},{'lm2':[{'k':'a'},{'k':'a','p':1},{'k':'a','p':2}]},
     {'any':{}},{'any':{'a':1,'b':1}},{'one':{}},{'one':{'a':1,'b':1}},{'all':2},{'all':6},{'not':'xy'},
     {'pre':{'a':{'b':1}}},{'pre2':{'x':1,'known':{'a':1,'z':2}}},{'prelist':[{'a':1,'z':2}]},
     {'emb':{}},{'emb':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'x','foo':1},'spec':{'z':1}}},{'emb2':{'apiVersion':'v1','kind':'Pod','metadata':{'name':'X_','labels':{'a':'b'}},'spec':{'z':1},'y':1}},
     {'emb':{'apiVersion':'a/b/c','kind':'Po_d','metadata':{'labels':{'a b':'x'}}}},{'emb':{'apiVersion':1,'kind':'x','metadata':{'name':5}}},
     {'def':{}},{'def':{'s':None,'n':None,'o':None}},{'dlist':[{},{'i':1}]},{'dmap':{'a':{},'b':{'i':2}}},
     {'unk':1,'sub':{'a':1},'list':[1],'objn':{'q':1}},{'dlist':[{'zz':1},{'yy':{'d':1}}],'dmap':{'k':{'u':1}}},
     'notobject',5,[1],None,
     ]: t(s)
    t({},status=5); t({},status={'x':'q'}); t({},unk=5)
    for f,vals in {'byte':['aGk=','!'],'date':['2020-01-01','2020-13-01','x'],'date_time':['x'],'datetime':['x','2020-01-01T00:00:00Z','2020-01-01','2020-01-01T00:00:00.5+02:00'],'duration':['1h','3 days','x','1','1d'],'ipv4':['1.2.3.4','::1','1.2.3','01.2.3.4'],'ipv6':['::1','1.2.3.4','x'],'cidr':['1.2.3.0/24','1.2.3.4','::/0','1.2.3.4/33'],'uri':['http://a','/a/b','a','','a b'],'email':['a@b','A <a@b.c>','x'],'uuid':['00000000-0000-0000-0000-000000000000','00000000000000000000000000000000','x'],'uuid4':['00000000-0000-4000-8000-000000000000','00000000-0000-0000-0000-000000000000'],'hostname':['a.b','a_b','-a','A'],'mac':['00:00:5e:00:53:01','0000.5e00.5301','00-00-5e-00-53-01','x','02:00:5e:10:00:00:00:01'],'password':['x',''],'bsonobjectid':['507f1f77bcf86cd799439011','x'],'isbn':['0321751043','x'],'creditcard':['4111111111111111','x'],'ssn':['111-11-1111','x'],'hexcolor':['#fff','x'],'rgbcolor':['rgb(1,2,3)','rgb(300,2,3)','x'],'k8s_short_name':['a','A'],'k8s_long_name':['a.b','A'],'int32':['x']}.items():
      for v in vals: t({'fmt_'+f:v})


def schemas(t):
    t('notype',{})
    t('itemsnotype',L({}))
    t('badtype',{'type':'foo'})
    t('null',{'type':'null'})
    t('array-noitems',{'type':'array'})
    t('items-array',{'type':'array','items':[S(),S()]})
    t('addl-false',{'type':'object','additionalProperties':False})
    t('addl-true+props',O({'a':S()},additionalProperties=True))
    t('addl-schema+props',O({'a':S()},additionalProperties=S()))
    t('unique',L(S(),uniqueItems=True))
    t('ref',S(**{'$ref':'#/x'})); t('id',S(id='x')); t('defs',S(definitions={'a':S()})); t('deps',S(dependencies={'a':['b']})); t('patprops',S(patternProperties={'a':S()})); t('addlitems',L(S(),additionalItems=True))
    t('discr',S(discriminator={'propertyName':'x'},readOnly=True,deprecated=True,xml={}))
    t('pattern',S(pattern='(')); t('lookahead',S(pattern='(?=a)')); t('backref',S(pattern=r'(a)\1')); t('poss',S(pattern='a++')); t('bigrep',S(pattern='a{2000}')); t('1000x1000',S(pattern='(a{1000}){1000}')); t('pL',S(pattern=r'^\pL+\z'))
    t('anyof-type',{'type':'integer','anyOf':[{'type':'integer'}]})
    t('nested',O({'a':S()},anyOf=[{'title':'x','description':'y','nullable':True,'default':1,'type':'object','properties':{'a':{'minLength':1}}}]))
    t('nested-ext',O({'a':S()},allOf=[x({'additionalProperties':S()},preserve_unknown_fields=True,embedded_resource=True,int_or_string=True,list_type='set',map_type='atomic',list_map_keys=['a'])]))
    t('nested-val',O({'a':S()},allOf=[{'x-kubernetes-validations':[{'rule':'true'}]}]))
    t('incomplete',O({'a':S()},anyOf=[{'properties':{'b':{'minLength':1}}}]))
    t('incomplete-items',O({'a':S()},**{'not':{'items':{'minLength':1}}}))
    t('nested-meta',O({'metadata':{'type':'object'}},anyOf=[{'properties':{'metadata':{'minProperties':1}}}]))
    t('emb-notype',x({},embedded_resource=True,preserve_unknown_fields=True)); t('emb-str',x(S(),embedded_resource=True,preserve_unknown_fields=True)); t('emb-noprops',x({'type':'object'},embedded_resource=True)); t('emb-addl',x({'type':'object','additionalProperties':S()},embedded_resource=True,preserve_unknown_fields=True))
    t('emb-meta',x(O({'metadata':S(),'kind':I(),'apiVersion':I()}),embedded_resource=True))
    t('ios-type',x(I(),int_or_string=True)); t('ios-pre',x({},int_or_string=True,preserve_unknown_fields=True)); t('ios-emb',x({},int_or_string=True,embedded_resource=True)); 
    t('ios-any',x({'anyOf':[{'type':'integer'},{'type':'string'}]},int_or_string=True)); t('ios-any-pat',x({'anyOf':[{'type':'integer'},{'type':'string'}],'pattern':'x'},int_or_string=True)); t('ios-all',x({'allOf':[{'anyOf':[{'type':'integer'},{'type':'string'}]},{'pattern':'x'}]},int_or_string=True)); t('any-noios',{'type':'string','anyOf':[{'type':'integer'},{'type':'string'}]}); t('ios-swapped',x({'anyOf':[{'type':'string'},{'type':'integer'}]},int_or_string=True))
    t('pre-false',x({'type':'object'},preserve_unknown_fields=False)); t('pre-notype',x({},preserve_unknown_fields=True))
    t('lt-bad',x(L(S()),list_type='foo')); t('lt-str',x(S(),list_type='set')); t('lt-none',x({},list_type='set')); t('mt-bad',x({'type':'object'},map_type='foo')); t('mt-str',x(S(),map_type='atomic'))
    t('set-obj',x(L({'type':'object'}),list_type='set')); t('set-objatomic',x(L(x({'type':'object'},map_type='atomic')),list_type='set')); t('set-list',x(L(x(L(S()),list_type='set')),list_type='set')); t('set-null',x(L(S(nullable=True)),list_type='set'))
    t('map-nokeys',x(L(O({'a':S()})),list_type='map')); t('keys-nomap',x(L(O({'a':S()})),list_map_keys=['a'])); t('keys-set',x(L(S()),list_type='set',list_map_keys=['a'])); t('map-str',x(L(S()),list_type='map',list_map_keys=['a'])); t('map-badkey',x(L(O({'a':S()},required=['a'])),list_type='map',list_map_keys=['b'])); t('map-objkey',x(L(O({'a':{'type':'object'}},required=['a'])),list_type='map',list_map_keys=['a'])); t('map-dup',x(L(O({'a':S()},required=['a'])),list_type='map',list_map_keys=['a','a'])); t('map-opt',x(L(O({'a':S()})),list_type='map',list_map_keys=['a'])); t('map-nullable',x(L(O({'a':S(nullable=True)},required=['a'],nullable=True)),list_type='map',list_map_keys=['a']))
    t('def-type',S(default=1)); t('def-invalid',I(default=1,minimum=2)); t('def-prune',O({'a':S()},default={'b':1})); t('def-req',O({'a':S()},required=['a'],default={})); t('def-null',S(default=None)); t('def-null2',S(default=None,nullable=True)); t('def-defreq',O({'a':S(default='x')},required=['a'],default={})); t('def-under-item',L(S(default='x')))
    for n,r in {'root-notype':{}, 'root-str':S(),'root-addl':{'type':'object','additionalProperties':S()},'root-null':O({},nullable=True),'root-meta':O({'metadata':O({'labels':{'type':'object'}})}),'root-meta-ok':O({'metadata':O({'name':S(pattern='x'),'generateName':S()})}),'root-meta-str':O({'metadata':S()}),'root-kind':O({'kind':I(),'apiVersion':S(default='x')}),'root-def':O({},default={}),'root-emb':x(O({}),embedded_resource=True),'root-metadef':O({'metadata':{'type':'object','default':{}}})}.items(): t(n,c=crd(r))
    st={'subresources':{'status':{}}}
    t('status-root',c=crd(O({},minProperties=1),version=st)); t('status-root2',c=crd(O({},anyOf=[{'minProperties':1}]),version=st))
    t('badver',c=crd(O({}),version={'name':'V1'})); t('noschema',c=crd(None,version={'schema':None})); t('pres',c=crd(O({}),preserveUnknownFields=True)); t('scope',c=crd(O({}),scope='Foo')); t('noscope',c=crd(O({}),scope=''))
    t('col',c=crd(O({}),version={'additionalPrinterColumns':[{'name':'','type':'','jsonPath':''},{'name':'a','type':'foo','jsonPath':'x','format':'q'},{'name':'b','type':'string','jsonPath':'.a[?(@.b=="c")].d[*]'},{'name':'c','type':'string','jsonPath':'.a['},{'name':'c','type':'string','jsonPath':".metadata.labels['a.b']"},{'name':'c','type':'string','jsonPath':"[0]"}]}))
    t('scale',c=crd(O({}),version={'subresources':{'scale':{'specReplicasPath':'.x','statusReplicasPath':'y','labelSelectorPath':'.z'}}})); t('scale2',c=crd(O({}),version={'subresources':{'scale':{'specReplicasPath':'','statusReplicasPath':''}}}))
    t('sel',c=crd(O({'spec':O({'a':S(),'o':{'type':'object'}})}),version={'selectableFields':[{'jsonPath':'.spec.a'},{'jsonPath':'.spec.a'},{'jsonPath':'.spec.o'},{'jsonPath':'.spec.zz'},{'jsonPath':'.metadata.name'},{'jsonPath':''},{'jsonPath':'x'}]}))
    t('depr',c=crd(O({}),version={'deprecationWarning':'x'})); t('depr2',c=crd(O({}),version={'deprecated':True,'deprecationWarning':''})); t('depr3',c=crd(O({}),version={'deprecated':True,'deprecationWarning':'a\nb'+'c'*300}))
    c=crd(O({})); c['spec']['names'].update(plural='P_',singular='S_',kind='K_',listKind='K_',shortNames=['A'],categories=['B']); t('names',c=c)
    c=crd(O({})); c['metadata']['name']='x.y'; t('name',c=c)
    c=crd(O({})); c['spec']['group']='nodots'; t('group',c=c)
    c=crd(O({})); c['spec']['group']='a.k8s.io'; c['metadata']['name']='xprobes.a.k8s.io'; t('k8s',c=c)
    c['metadata']['annotations']={'api-approved.kubernetes.io':'foo'}; t('k8s-foo',c=c)
    c['metadata']['annotations']={'api-approved.kubernetes.io':'unapproved, test'}; t('k8s-un',c=c)
    c=crd(O({})); c['spec']['versions']=[]; t('nover',c=c)
    c=crd(O({})); c['spec']['versions']*=2; t('dupver',c=c)
    c=crd(O({})); c['spec']['versions'][0]['storage']=False; t('nostor',c=c)
    c=crd(O({}),conversion={'strategy':'Foo'}); t('conv',c=c); c=crd(O({}),conversion={'strategy':'Webhook'}); t('conv2',c=c); c=crd(O({}),conversion={'strategy':'Webhook','webhook':{'conversionReviewVersions':['v1'],'clientConfig':{}}}); t('conv3',c=c); c=crd(O({}),conversion={'strategy':'None','webhook':{'conversionReviewVersions':['v1']}}); t('conv4',c=c)
    for n,names in {'nonames':{}, 'nokind':{'plural':'xprobes'}, 'noplural':{'kind':'XProbe'}, 'badkind':{'plural':'xprobes','kind':'X_'}, 'samekind':{'plural':'xprobes','kind':'XProbe','listKind':'XProbe','shortNames':['A'],'categories':['B']}}.items(): c=crd(O({}),scope='Foo'); c['spec']['names']=names; c['spec']['group']='' if n == 'nonames' else G; t(n,c=c)
    for n,review in {'review-none':[],'review-unknown':['v2'],'review-twice':['v1','v1'],'review-bad':['V1','v1']}.items(): t(n,c=crd(O({}),conversion={'strategy':'Webhook','webhook':{'conversionReviewVersions':review,'clientConfig':{'url':'https://a.b'}}}))
    for n,same in {'shared':True,'own':False}.items():
        c=crd(O({'a':{}}),version={'additionalPrinterColumns':[{'name':'','type':'string','jsonPath':'.a'}],'subresources':{'scale':{'specReplicasPath':'','statusReplicasPath':'.status.a'}},'selectableFields':[{'jsonPath':''}]})
        v=copy.deepcopy(c['spec']['versions'][0]); v.update(name='v2',storage=False)
        if not same: v['schema']['openAPIV3Schema']['properties']={'b':{}}; v['additionalPrinterColumns'][0]['type']='date'; v['subresources']['scale']['statusReplicasPath']='.status.b'; v['selectableFields'].append({'jsonPath':''})
        c['spec']['versions'].append(v); c['spec']['names']['kind']='K_'; t(n,c=c)

# fmt: on


class Answer:
    def __init__(self, response):
        self.status, self.headers, text = response.status, response.headers, response.read()
        self.json = json.loads(text) if text.startswith(b"{") else None


def ask(api, method, path, body=None):
    return Answer(api.open(method, path, body and json.dumps(body), {"Content-Type": "application/json"}))


class Recorder:
    def __init__(self, api, out):
        self.api, self.out = api, out

    def say(self, case):
        self.out.write(json.dumps(case) + "\n")

    def object(self, spec, **top):
        body = dict({"apiVersion": G + "/v1", "kind": "Probe", "metadata": {"name": "p"}, "spec": spec}, **top)
        r = ask(self.api, "POST", f"/apis/{G}/v1/probes?dryRun=All", body)
        case = {"name": json.dumps(spec)[:80], "object": dict({"spec": spec}, **top)}
        if r.status == 201:
            case["result"] = {k: v for k, v in r.json.items() if k in ("spec", "status")}
            warnings = [w for w in r.headers.get_all("Warning") or []]
            case["unknown"] = [w[len('299 - "unknown field \\"'):-3] for w in warnings]
        elif r.status == 422:
            case["causes"] = causes(r.json)
        else:
            return
        self.say(case)

    def crd(self, name, schema=None, c=None):
        c = copy.deepcopy(c or crd(O({"spec": schema})))
        names = c["spec"].get("names", {})
        if c["metadata"]["name"] == "probes." + G:
            c["metadata"]["name"] = "xprobes." + G
        if names.get("plural") == "probes":
            names.update(plural="xprobes", kind="XProbe")
        r = ask(self.api, "POST", CRDS + "?dryRun=All", c)
        self.say({"name": name, "crd": {"metadata": c["metadata"], "spec": c["spec"]}, "causes": causes(r.json) if r.status == 422 else []})


def main(kubeconfig, folder):
    api = Api(kubeconfig)
    schema = O({"spec": spec, "status": O({"x": I()})})
    ask(api, "POST", CRDS, crd(schema))
    while ask(api, "GET", f"/apis/{G}/v1/probes").status != 200:
        time.sleep(0.2)
    with open(folder + "/crd_objects.jsonl", "w") as out:
        recorder = Recorder(api, out)
        recorder.say({"name": "schema", "schema": schema})
        objects(recorder.object)
    with open(folder + "/crd_schemas.jsonl", "w") as out:
        schemas(Recorder(api, out).crd)
    ask(api, "DELETE", CRDS + "/probes." + G)


if __name__ == "__main__":
    main(*sys.argv[1:])
